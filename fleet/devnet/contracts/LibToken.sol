// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IERC20 {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function transfer(address to, uint256 value) external returns (bool);

    function transferFrom(address from, address to, uint256 value) external returns (bool);

    function approve(address spender, uint256 value) external returns (bool);

    function balanceOf(address account) external view returns (uint256);

    function allowance(address owner, address spender) external view returns (uint256);
}

/// The ERC-20 that registration, MAIN and credits are paid in. Every way to fail is `false`, never a foreign revert.
library LibToken {
    bytes32 internal constant SLOT = keccak256("localharness.token.storage.v1");

    struct Layout {
        address token;
    }

    function store() internal pure returns (Layout storage l) {
        bytes32 slot = SLOT;
        assembly ("memory-safe") {
            l.slot := slot
        }
    }

    /// Moves `value` from `from` to the diamond.
    function pull(address from, uint256 value) internal returns (bool) {
        return _call(abi.encodeCall(IERC20.transferFrom, (from, address(this), value)));
    }

    /// Moves `value` from the diamond to `to`.
    function push(address to, uint256 value) internal returns (bool) {
        return _call(abi.encodeCall(IERC20.transfer, (to, value)));
    }

    function _call(bytes memory data) private returns (bool) {
        address token = store().token;
        if (token.code.length == 0) return false;
        (bool ok, bytes memory answer) = token.call(data);
        return ok && answer.length == 32 && uint256(bytes32(answer)) == 1;
    }
}
