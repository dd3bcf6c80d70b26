// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC173} from "./IDiamond.sol";
import {LibDiamond} from "./LibDiamond.sol";

/// EIP-173 ownership of the diamond.
contract OwnershipFacet is IERC173 {
    function owner() external view returns (address) {
        return LibDiamond.store().owner;
    }

    function transferOwnership(address newOwner) external {
        LibDiamond.requireOwner();
        LibDiamond.setOwner(newOwner);
    }
}
