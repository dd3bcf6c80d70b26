// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Names, owners, metadata and MAIN pointers, shared by the three facets that change them.
library LibRegistry {
    bytes32 internal constant SLOT = keccak256("localharness.registry.storage.v1");

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event MainCleared(address indexed owner, uint256 indexed tokenId);

    struct Layout {
        uint256 nextId; // 0 until the first registration: ids start at 1
        uint256 registrationCost;
        uint256 mainCost;
        mapping(uint256 => address) ownerOf;
        mapping(address => uint256) balanceOf;
        mapping(uint256 => string) nameOf;
        mapping(string => uint256) idByName;
        mapping(address => uint256) idOf;
        mapping(address => uint256) mainOf;
        mapping(uint256 => mapping(bytes32 => bytes)) metadata;
    }

    function store() internal pure returns (Layout storage l) {
        bytes32 slot = SLOT;
        assembly ("memory-safe") {
            l.slot := slot
        }
    }

    /// The id that the next registration gets.
    function upcoming(Layout storage l) internal view returns (uint256) {
        return l.nextId == 0 ? 1 : l.nextId;
    }

    function mint(address owner, string calldata name) internal returns (uint256 id) {
        Layout storage l = store();
        id = upcoming(l);
        l.nextId = id + 1;
        l.ownerOf[id] = owner;
        ++l.balanceOf[owner];
        l.nameOf[id] = name;
        l.idByName[name] = id;
        l.idOf[owner] = id;
        emit Transfer(address(0), owner, id);
    }

    /// Frees the name. Metadata under the old id and `idOf[owner]` stay, as on the real platform.
    function burn(uint256 id) internal returns (address owner, string memory name) {
        Layout storage l = store();
        owner = l.ownerOf[id];
        name = l.nameOf[id];
        delete l.ownerOf[id];
        --l.balanceOf[owner];
        delete l.idByName[name];
        delete l.nameOf[id];
        if (l.mainOf[owner] == id) {
            delete l.mainOf[owner];
            emit MainCleared(owner, id);
        }
        emit Transfer(owner, address(0), id);
    }
}
