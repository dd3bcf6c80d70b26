// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// What ERC-8004's Reputation registry asks of an Identity registry, written from the standard's signatures.
contract IdentityRegistry {
    mapping(uint256 => address) private _owners;
    mapping(uint256 => string) private _uris;
    mapping(address => mapping(address => bool)) private _operators;
    uint256 private _lastId;

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    error ERC721NonexistentToken(uint256 tokenId);

    /// The first id is 0.
    function register(string calldata agentURI) external returns (uint256 agentId) {
        agentId = _lastId++;
        _owners[agentId] = msg.sender;
        _uris[agentId] = agentURI;
        emit Registered(agentId, agentURI, msg.sender);
    }

    function setApprovalForAll(address operator, bool approved) external {
        _operators[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function ownerOf(uint256 agentId) public view returns (address owner) {
        owner = _owners[agentId];
        if (owner == address(0)) revert ERC721NonexistentToken(agentId);
    }

    function tokenURI(uint256 agentId) external view returns (string memory) {
        ownerOf(agentId);
        return _uris[agentId];
    }

    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool) {
        address owner = ownerOf(agentId);
        return spender == owner || _operators[owner][spender];
    }

    function getVersion() external pure returns (string memory) {
        return "2.0.0";
    }
}
