// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";
import {LibRegistry} from "./LibRegistry.sol";
import {LibToken} from "./LibToken.sol";

/// Which of its names an address goes by. Setting it is an act of its own: names mint without MAIN.
contract MainIdentityFacet {
    event MainRegistered(address indexed owner, uint256 indexed tokenId, string name);

    error UnknownToken(uint256 tokenId);
    error NotOwner(uint256 tokenId, address caller);

    /// No charge and no event when `tokenId` is MAIN already.
    function registerMain(uint256 tokenId) external {
        LibRegistry.Layout storage l = LibRegistry.store();
        address owner = l.ownerOf[tokenId];
        if (owner == address(0)) revert UnknownToken(tokenId);
        if (owner != msg.sender) revert NotOwner(tokenId, msg.sender);
        if (l.mainOf[msg.sender] == tokenId) return;
        l.mainOf[msg.sender] = tokenId;
        emit MainRegistered(msg.sender, tokenId, l.nameOf[tokenId]);
        if (l.mainCost > 0) require(LibToken.pull(msg.sender, l.mainCost), "main: transfer failed");
    }

    function clearMain() external {
        LibRegistry.Layout storage l = LibRegistry.store();
        uint256 tokenId = l.mainOf[msg.sender];
        if (tokenId == 0) return;
        delete l.mainOf[msg.sender];
        emit LibRegistry.MainCleared(msg.sender, tokenId);
    }

    function mainOf(address account) external view returns (uint256) {
        return LibRegistry.store().mainOf[account];
    }

    function mainNameOf(address account) external view returns (string memory) {
        LibRegistry.Layout storage l = LibRegistry.store();
        return l.nameOf[l.mainOf[account]];
    }

    function isMain(uint256 tokenId) external view returns (bool) {
        LibRegistry.Layout storage l = LibRegistry.store();
        address owner = l.ownerOf[tokenId];
        return owner != address(0) && l.mainOf[owner] == tokenId;
    }

    function mainCost() external view returns (uint256) {
        return LibRegistry.store().mainCost;
    }

    function setMainCost(uint256 newCost) external {
        LibDiamond.requireOwner();
        LibRegistry.store().mainCost = newCost;
    }
}
