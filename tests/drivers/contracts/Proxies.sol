// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A token, and the proxies that stand before tokens; each slot is computed here, as its standard says.
contract Token {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    uint256 public totalSupply;

    function mint(uint256 value) external {
        balanceOf[msg.sender] += value;
        totalSupply += value;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        return true;
    }
}

abstract contract Proxy {
    function slot() internal pure virtual returns (bytes32);

    function implementation_() internal view virtual returns (address to) {
        bytes32 place = slot();
        assembly {
            to := sload(place)
        }
    }

    function set(bytes32 place, address value) internal {
        assembly {
            sstore(place, value)
        }
    }

    fallback() external payable virtual {
        forward();
    }

    function forward() internal {
        address to = implementation_();
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), to, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch done
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}

contract ERC1967Proxy is Proxy {
    constructor(address to) {
        set(slot(), to);
    }

    function slot() internal pure override returns (bytes32) {
        return bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);
    }
}

/// Its admin alone meets its own function; everyone else, the implementation's.
contract TransparentUpgradeableProxy is ERC1967Proxy {
    bytes32 private constant ADMIN = bytes32(uint256(keccak256("eip1967.proxy.admin")) - 1);

    constructor(address to) ERC1967Proxy(to) {
        set(ADMIN, msg.sender);
    }

    fallback() external payable override {
        bytes32 place = ADMIN;
        address admin;
        assembly {
            admin := sload(place)
        }
        if (msg.sender != admin) {
            forward();
        }
        require(msg.sig == bytes4(keccak256("upgradeToAndCall(address,bytes)")), "denied");
        (address to, ) = abi.decode(msg.data[4:], (address, bytes));
        set(slot(), to);
    }
}

contract UniversalProxy is Proxy {
    constructor(address to) {
        set(slot(), to);
    }

    function slot() internal pure override returns (bytes32) {
        return keccak256("PROXIABLE");
    }
}

contract OlderProxy is Proxy {
    constructor(address to) {
        set(slot(), to);
    }

    function slot() internal pure override returns (bytes32) {
        return keccak256("org.zeppelinos.proxy.implementation");
    }
}

contract Beacon {
    address public implementation;

    constructor(address to) {
        implementation = to;
    }
}

contract BeaconProxy is Proxy {
    constructor(address to) {
        set(slot(), address(new Beacon(to)));
    }

    function slot() internal pure override returns (bytes32) {
        return bytes32(uint256(keccak256("eip1967.proxy.beacon")) - 1);
    }

    function implementation_() internal view override returns (address) {
        return Beacon(super.implementation_()).implementation();
    }
}
