// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDiamondLoupe, IERC165} from "./IDiamond.sol";
import {LibDiamond} from "./LibDiamond.sol";

/// Tells which facet answers which selector.
contract DiamondLoupeFacet is IDiamondLoupe, IERC165 {
    function facets() external view returns (Facet[] memory all) {
        LibDiamond.Layout storage l = LibDiamond.store();
        all = new Facet[](l.facets.length);
        for (uint256 i; i < all.length; ++i) {
            all[i] = Facet(l.facets[i], l.listings[l.facets[i]].selectors);
        }
    }

    function facetFunctionSelectors(address _facet) external view returns (bytes4[] memory) {
        return LibDiamond.store().listings[_facet].selectors;
    }

    function facetAddresses() external view returns (address[] memory) {
        return LibDiamond.store().facets;
    }

    function facetAddress(bytes4 _functionSelector) external view returns (address) {
        return LibDiamond.store().routes[_functionSelector].facet;
    }

    function supportsInterface(bytes4 interfaceId) external view returns (bool) {
        return LibDiamond.store().interfaces[interfaceId];
    }
}
