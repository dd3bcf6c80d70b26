// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IdentityRegistry} from "./IdentityRegistry.sol";

/// ERC-8004's Reputation registry, version 2.0.0, written from the standard's signatures: what the fleet uses of it.
/// Endpoint, URI and hash are in the event only, as in the reference contracts.
contract ReputationRegistry {
    struct Feedback {
        int128 value;
        uint8 valueDecimals;
        bool isRevoked;
        string tag1;
        string tag2;
    }

    /// What an event carries beyond what is stored.
    struct Given {
        uint256 agentId;
        uint64 index;
        string endpoint;
        string feedbackURI;
        bytes32 feedbackHash;
    }

    IdentityRegistry private immutable _IDENTITY;
    mapping(uint256 => mapping(address => mapping(uint64 => Feedback))) private _feedback;
    mapping(uint256 => mapping(address => uint64)) private _lastIndex;
    mapping(uint256 => address[]) private _clients;
    mapping(uint256 => mapping(address => mapping(uint64 => mapping(address => uint64)))) private _responses;

    event NewFeedback(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        int128 value,
        uint8 valueDecimals,
        string indexed indexedTag1,
        string tag1,
        string tag2,
        string endpoint,
        string feedbackURI,
        bytes32 feedbackHash
    );
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);
    event ResponseAppended(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        address indexed responder,
        string responseURI,
        bytes32 responseHash
    );

    constructor(IdentityRegistry identity) {
        _IDENTITY = identity;
    }

    function getIdentityRegistry() external view returns (address) {
        return address(_IDENTITY);
    }

    function giveFeedback(
        uint256 agentId,
        int128 value,
        uint8 valueDecimals,
        string memory tag1,
        string memory tag2,
        string memory endpoint,
        string memory feedbackURI,
        bytes32 feedbackHash
    ) external {
        require(valueDecimals <= 18, "too many decimals");
        require(value >= -1e38 && value <= 1e38, "value too large");
        require(!_IDENTITY.isAuthorizedOrOwner(msg.sender, agentId), "Self-feedback not allowed");
        if (_lastIndex[agentId][msg.sender] == 0) _clients[agentId].push(msg.sender);
        Given memory given =
            Given(agentId, ++_lastIndex[agentId][msg.sender], endpoint, feedbackURI, feedbackHash);
        Feedback memory feedback = Feedback(value, valueDecimals, false, tag1, tag2);
        _feedback[agentId][msg.sender][given.index] = feedback;
        _emitGiven(given, feedback);
    }

    /// On a stack of its own: the event has eleven fields.
    function _emitGiven(Given memory given, Feedback memory feedback) private {
        emit NewFeedback(
            given.agentId,
            msg.sender,
            given.index,
            feedback.value,
            feedback.valueDecimals,
            feedback.tag1,
            feedback.tag1,
            feedback.tag2,
            given.endpoint,
            given.feedbackURI,
            given.feedbackHash
        );
    }

    function revokeFeedback(uint256 agentId, uint64 index) external {
        _requireKnown(agentId, msg.sender, index);
        Feedback storage feedback = _feedback[agentId][msg.sender][index];
        require(!feedback.isRevoked, "Already revoked");
        feedback.isRevoked = true;
        emit FeedbackRevoked(agentId, msg.sender, index);
    }

    /// Anyone may respond.
    function appendResponse(
        uint256 agentId,
        address client,
        uint64 index,
        string calldata responseURI,
        bytes32 responseHash
    ) external {
        _requireKnown(agentId, client, index);
        require(bytes(responseURI).length > 0, "Empty URI");
        _responses[agentId][client][index][msg.sender]++;
        emit ResponseAppended(agentId, client, index, msg.sender, responseURI, responseHash);
    }

    function getLastIndex(uint256 agentId, address client) external view returns (uint64) {
        return _lastIndex[agentId][client];
    }

    function getClients(uint256 agentId) external view returns (address[] memory) {
        return _clients[agentId];
    }

    function readFeedback(uint256 agentId, address client, uint64 index)
        external
        view
        returns (int128 value, uint8 valueDecimals, string memory tag1, string memory tag2, bool isRevoked)
    {
        _requireKnown(agentId, client, index);
        Feedback storage feedback = _feedback[agentId][client][index];
        return (feedback.value, feedback.valueDecimals, feedback.tag1, feedback.tag2, feedback.isRevoked);
    }

    function _requireKnown(uint256 agentId, address client, uint64 index) private view {
        require(index > 0 && index <= _lastIndex[agentId][client], "index out of bounds");
    }
}
