// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IdentityRegistry} from "./IdentityRegistry.sol";

/// ERC-8004's Validation registry, written from the standard's signatures: requests, responses and their reads. With
/// `slip` it lists what is asked of one agent under another one, as a faulty registry would.
contract ValidationRegistry {
    struct Status {
        address validator;
        uint256 agentId;
        uint8 response;
        bytes32 responseHash;
        string tag;
        uint256 lastUpdate;
    }

    IdentityRegistry private immutable _IDENTITY;
    uint256 private immutable _SLIP;
    mapping(bytes32 => Status) private _statuses;
    mapping(uint256 => bytes32[]) private _ofAgent;

    event ValidationRequest(
        address indexed validatorAddress, uint256 indexed agentId, string requestURI, bytes32 indexed requestHash
    );
    event ValidationResponse(
        address indexed validatorAddress,
        uint256 indexed agentId,
        bytes32 indexed requestHash,
        uint8 response,
        string responseURI,
        bytes32 responseHash,
        string tag
    );

    constructor(IdentityRegistry identity, uint256 slip) {
        _IDENTITY = identity;
        _SLIP = slip;
    }

    function getIdentityRegistry() external view returns (address) {
        return address(_IDENTITY);
    }

    function validationRequest(address validator, uint256 agentId, string calldata requestURI, bytes32 requestHash)
        external
    {
        require(msg.sender == _IDENTITY.ownerOf(agentId), "Not authorized");
        require(_statuses[requestHash].validator == address(0), "exists");
        _statuses[requestHash] = Status(validator, agentId, 0, bytes32(0), "", block.timestamp);
        _ofAgent[agentId + _SLIP].push(requestHash);
        emit ValidationRequest(validator, agentId, requestURI, requestHash);
    }

    function validationResponse(
        bytes32 requestHash,
        uint8 response,
        string calldata responseURI,
        bytes32 responseHash,
        string calldata tag
    ) external {
        Status storage status = _statuses[requestHash];
        require(msg.sender == status.validator, "not validator");
        require(response <= 100, "resp>100");
        (status.response, status.responseHash, status.tag) = (response, responseHash, tag);
        status.lastUpdate = block.timestamp;
        emit ValidationResponse(
            msg.sender, status.agentId, requestHash, response, responseURI, responseHash, tag
        );
    }

    function getValidationStatus(bytes32 requestHash)
        external
        view
        returns (address, uint256, uint8, bytes32, string memory, uint256)
    {
        Status storage one = _statuses[requestHash];
        require(one.validator != address(0), "unknown");
        return (one.validator, one.agentId, one.response, one.responseHash, one.tag, one.lastUpdate);
    }

    function getAgentValidations(uint256 agentId) external view returns (bytes32[] memory) {
        return _ofAgent[agentId];
    }
}
