// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// The reads of ERC-8004's Identity registry, and what changes a registration, written from the standard's
/// signatures; without transfers and metadata.
contract IdentityRegistry {
    mapping(uint256 => address) private _owners;
    mapping(uint256 => string) private _uris;
    mapping(uint256 => address) private _wallets;
    mapping(address => mapping(address => bool)) private _operators;
    uint256 private _lastId;

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    error ERC721NonexistentToken(uint256 tokenId);

    modifier onlyOwner(uint256 agentId) {
        require(msg.sender == ownerOf(agentId), "Not authorized");
        _;
    }

    /// The first id is 0; its wallet is its owner's address.
    function register(string calldata agentURI) external returns (uint256 agentId) {
        agentId = _lastId++;
        _owners[agentId] = msg.sender;
        _uris[agentId] = agentURI;
        _wallets[agentId] = msg.sender;
        emit Registered(agentId, agentURI, msg.sender);
    }

    function setAgentURI(uint256 agentId, string calldata newURI) external onlyOwner(agentId) {
        _uris[agentId] = newURI;
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    function unsetAgentWallet(uint256 agentId) external onlyOwner(agentId) {
        delete _wallets[agentId];
    }

    function getAgentWallet(uint256 agentId) external view returns (address) {
        ownerOf(agentId);
        return _wallets[agentId];
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
