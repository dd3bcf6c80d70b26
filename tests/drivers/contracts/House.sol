// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A second platform's facets: names that can be given away, credit in native coin, notes of a limited length.
library LibHouse {
    bytes32 internal constant SLOT = keccak256("house.storage.v1");
    bytes32 internal constant DIAMOND = 0xc8fcad8db84d3cc18b4c41d551ea0ee66dd599cde068d998e57d5e09332c131c;

    struct Layout {
        uint256 nextId;
        mapping(uint256 => address) ownerOf;
        mapping(uint256 => string) nameOf;
        mapping(string => uint256) idOf;
        mapping(address => uint256) balanceOf;
        mapping(uint256 => mapping(bytes32 => bytes)) metadata;
        mapping(address => uint256) creditOf;
        uint256 relayFee;
        address treasury;
        bool paused;
        uint256 notes;
        mapping(uint256 => string) note;
        uint256 kept;
    }

    function store() internal pure returns (Layout storage l) {
        bytes32 slot = SLOT;
        assembly ("memory-safe") {
            l.slot := slot
        }
    }

    function requireOwner() internal view {
        address owner;
        bytes32 slot = bytes32(uint256(DIAMOND) + 4);
        assembly ("memory-safe") {
            owner := sload(slot)
        }
        require(msg.sender == owner, "house: not owner");
    }
}

contract NamesFacet {
    event Named(uint256 indexed id, address indexed owner, string name);
    event Given(uint256 indexed id, address indexed owner);

    function register(string calldata name) external returns (uint256 id) {
        LibHouse.Layout storage l = LibHouse.store();
        require(!l.paused, "house: paused");
        require(bytes(name).length > 0 && bytes(name).length < 64 && _plain(bytes(name)), "house: bad name");
        require(l.idOf[name] == 0, "house: taken");
        id = ++l.nextId;
        l.ownerOf[id] = msg.sender;
        l.nameOf[id] = name;
        l.idOf[name] = id;
        ++l.balanceOf[msg.sender];
        emit Named(id, msg.sender, name);
    }

    function transferName(uint256 id, address to) external {
        LibHouse.Layout storage l = LibHouse.store();
        require(l.ownerOf[id] == msg.sender, "house: not yours");
        require(to != address(0), "house: to none");
        --l.balanceOf[l.ownerOf[id]];
        ++l.balanceOf[to];
        l.ownerOf[id] = to;
        emit Given(id, to);
    }

    function setMetadata(uint256 id, bytes32 key, bytes calldata value) external {
        LibHouse.Layout storage l = LibHouse.store();
        require(l.ownerOf[id] == msg.sender, "house: not yours");
        l.metadata[id][key] = value;
    }

    function metadata(uint256 id, bytes32 key) external view returns (bytes memory) {
        return LibHouse.store().metadata[id][key];
    }

    function nextId() external view returns (uint256) {
        return LibHouse.store().nextId + 1;
    }

    function ownerOfId(uint256 id) external view returns (address) {
        return LibHouse.store().ownerOf[id];
    }

    function ownerOf(uint256 id) external view returns (address owner) {
        owner = LibHouse.store().ownerOf[id];
        require(owner != address(0), "house: no such id");
    }

    function nameOfId(uint256 id) external view returns (string memory) {
        return LibHouse.store().nameOf[id];
    }

    function idOfName(string calldata name) external view returns (uint256) {
        return LibHouse.store().idOf[name];
    }

    function isTaken(string calldata name) external view returns (bool) {
        return LibHouse.store().idOf[name] != 0;
    }

    function balanceOf(address owner) external view returns (uint256) {
        return LibHouse.store().balanceOf[owner];
    }

    function _plain(bytes calldata name) private pure returns (bool) {
        if (name[0] == "-" || name[name.length - 1] == "-") return false;
        for (uint256 i; i < name.length; ++i) {
            if (name[i] != "-" && (name[i] < "a" || name[i] > "z") && (name[i] < "0" || name[i] > "9")) return false;
        }
        return true;
    }
}

contract FundsFacet {
    event Deposited(address indexed who, uint256 amount);
    event Withdrawn(address indexed who, uint256 amount);
    event FeeSet(uint256 fee);

    function deposit() external payable {
        LibHouse.store().creditOf[msg.sender] += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    function withdraw() external {
        LibHouse.Layout storage l = LibHouse.store();
        uint256 amount = l.creditOf[msg.sender];
        l.creditOf[msg.sender] = 0;
        (bool ok,) = msg.sender.call{value: amount}("");
        require(ok, "house: not paid");
        emit Withdrawn(msg.sender, amount);
    }

    function creditOf(address who) external view returns (uint256) {
        return LibHouse.store().creditOf[who];
    }

    function grantCredits(address who, uint256 amount) external {
        LibHouse.requireOwner();
        LibHouse.store().creditOf[who] += amount;
    }

    function relayFee() external view returns (uint256) {
        return LibHouse.store().relayFee;
    }

    function setRelayFee(uint256 fee) external {
        LibHouse.requireOwner();
        LibHouse.store().relayFee = fee;
        emit FeeSet(fee);
    }

    function treasury() external view returns (address) {
        return LibHouse.store().treasury;
    }

    function setTreasury(address to) external {
        LibHouse.requireOwner();
        LibHouse.store().treasury = to;
    }

    function treasuryBalance() external view returns (uint256) {
        return address(this).balance;
    }

    function withdrawAll(address to) external {
        LibHouse.requireOwner();
        (bool ok,) = to.call{value: address(this).balance}("");
        require(ok, "house: not paid");
    }

    function paused() external view returns (bool) {
        return LibHouse.store().paused;
    }

    function pause() external {
        LibHouse.requireOwner();
        LibHouse.store().paused = true;
    }
}

contract NotesFacet {
    event Noted(address indexed who, string text);

    function maxNoteLength() external pure returns (uint256) {
        return 64;
    }

    function noteCount() external view returns (uint256) {
        return LibHouse.store().notes;
    }

    function leaveNote(string calldata text) external {
        require(bytes(text).length <= 64, "house: too long");
        LibHouse.Layout storage l = LibHouse.store();
        l.note[l.notes++] = text;
        emit Noted(msg.sender, text);
    }

    /// Anyone may keep a number: nothing names whose it is.
    function keep(uint256 number) external {
        LibHouse.store().kept = number;
    }
}
