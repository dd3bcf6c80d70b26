// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";
import {LibRegistry} from "./LibRegistry.sol";
import {IERC20, LibToken} from "./LibToken.sol";

/// Names as ERC-721 tokens (they cannot be transferred here), their metadata, and what registration costs.
contract RegistryFacet {
    event Registered(uint256 indexed agentId, address indexed owner, string name);
    event MetadataSet(uint256 indexed agentId, bytes32 indexed key, bytes value);
    event RegistrationCostUpdated(uint256 previousCost, uint256 newCost);

    error InvalidName(string name);

    /// Pays last: a failed payment undoes everything before it.
    function register(string calldata name) external returns (uint256 agentId) {
        if (!_isValidName(bytes(name))) revert InvalidName(name);
        LibRegistry.Layout storage l = LibRegistry.store();
        require(l.idByName[name] == 0, "name taken");
        agentId = LibRegistry.mint(msg.sender, name);
        emit Registered(agentId, msg.sender, name);
        if (l.registrationCost > 0) {
            require(LibToken.pull(msg.sender, l.registrationCost), "registration: transfer failed");
        }
    }

    function isTaken(string calldata name) external view returns (bool) {
        return LibRegistry.store().idByName[name] != 0;
    }

    function ownerOfName(string calldata name) external view returns (address) {
        LibRegistry.Layout storage l = LibRegistry.store();
        return l.ownerOf[l.idByName[name]];
    }

    function ownerOfId(uint256 agentId) external view returns (address) {
        return LibRegistry.store().ownerOf[agentId];
    }

    function idOfName(string calldata name) external view returns (uint256) {
        return LibRegistry.store().idByName[name];
    }

    function nameOfId(uint256 agentId) external view returns (string memory) {
        return LibRegistry.store().nameOf[agentId];
    }

    /// The most recent registration of `account`, even after its release.
    function idOf(address account) external view returns (uint256) {
        return LibRegistry.store().idOf[account];
    }

    function nextId() external view returns (uint256) {
        return LibRegistry.upcoming(LibRegistry.store());
    }

    function setMetadata(uint256 agentId, bytes32 key, bytes calldata value) external {
        LibRegistry.Layout storage l = LibRegistry.store();
        require(l.ownerOf[agentId] == msg.sender, "not owner");
        l.metadata[agentId][key] = value;
        emit MetadataSet(agentId, key, value);
    }

    function metadata(uint256 agentId, bytes32 key) external view returns (bytes memory) {
        return LibRegistry.store().metadata[agentId][key];
    }

    function registrationCost() external view returns (uint256) {
        return LibRegistry.store().registrationCost;
    }

    function setRegistrationCost(uint256 newCost) external {
        LibDiamond.requireOwner();
        LibRegistry.Layout storage l = LibRegistry.store();
        emit RegistrationCostUpdated(l.registrationCost, newCost);
        l.registrationCost = newCost;
    }

    function treasuryBalance() external view returns (uint256) {
        address token = LibToken.store().token;
        return token == address(0) ? 0 : IERC20(token).balanceOf(address(this));
    }

    function withdrawTreasury(address to, uint256 amount) external {
        LibDiamond.requireOwner();
        require(to != address(0), "treasury: zero recipient");
        require(LibToken.store().token != address(0), "treasury: token unset");
        require(LibToken.push(to, amount), "treasury: transfer failed");
    }

    function ownerOf(uint256 tokenId) external view returns (address owner) {
        owner = LibRegistry.store().ownerOf[tokenId];
        require(owner != address(0), "ERC721: invalid token ID");
    }

    function balanceOf(address owner) external view returns (uint256) {
        require(owner != address(0), "ERC721: zero address");
        return LibRegistry.store().balanceOf[owner];
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        LibRegistry.Layout storage l = LibRegistry.store();
        require(l.ownerOf[tokenId] != address(0), "ERC721: invalid token ID");
        return string.concat("https://", l.nameOf[tokenId], ".localharness.xyz/");
    }

    /// One DNS label: 1-63 of `a-z 0-9 -`, no `-` at either end; anything else would mint an unreachable name.
    function _isValidName(bytes calldata name) private pure returns (bool) {
        uint256 length = name.length;
        if (length == 0 || length > 63) return false;
        if (name[0] == "-" || name[length - 1] == "-") return false;
        for (uint256 i; i < length; ++i) {
            bytes1 c = name[i];
            bool letter = c >= "a" && c <= "z";
            bool digit = c >= "0" && c <= "9";
            if (!letter && !digit && c != "-") return false;
        }
        return true;
    }
}
