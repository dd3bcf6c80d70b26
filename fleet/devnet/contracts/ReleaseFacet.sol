// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";
import {LibRegistry} from "./LibRegistry.sol";

/// Gives names back: the owner one of their own, the diamond's owner any.
contract ReleaseFacet {
    event NameReleased(uint256 indexed tokenId, string name, address indexed formerOwner);

    error NotOwner();
    error CannotReleaseMain();
    /// Part of the interface; this diamond has no guilds.
    error CannotReleaseGuild();

    function releaseName(uint256 tokenId) external {
        LibRegistry.Layout storage l = LibRegistry.store();
        if (l.ownerOf[tokenId] != msg.sender) revert NotOwner();
        if (l.mainOf[msg.sender] == tokenId) revert CannotReleaseMain();
        _release(tokenId);
    }

    /// Ids that are free already are skipped.
    function adminBurnNames(uint256[] calldata tokenIds) external {
        LibDiamond.requireOwner();
        for (uint256 i; i < tokenIds.length; ++i) {
            _releaseIfOwned(tokenIds[i]);
        }
    }

    function adminResetAll() external {
        LibDiamond.requireOwner();
        uint256 end = LibRegistry.upcoming(LibRegistry.store());
        for (uint256 id = 1; id < end; ++id) {
            _releaseIfOwned(id);
        }
    }

    function _releaseIfOwned(uint256 tokenId) private {
        if (LibRegistry.store().ownerOf[tokenId] != address(0)) _release(tokenId);
    }

    function _release(uint256 tokenId) private {
        (address formerOwner, string memory name) = LibRegistry.burn(tokenId);
        emit NameReleased(tokenId, name, formerOwner);
    }
}
