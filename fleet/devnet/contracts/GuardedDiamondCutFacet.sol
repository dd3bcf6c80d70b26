// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDiamondCut, IDiamondLoupe, IERC165, IERC173} from "./IDiamond.sol";
import {LibDiamond} from "./LibDiamond.sol";

/// `diamondCut` without its two sharp edges: no code runs during a cut, and the core selectors stay.
contract GuardedDiamondCutFacet is IDiamondCut {
    function diamondCut(FacetCut[] calldata _diamondCut, address _init, bytes calldata _calldata) external {
        LibDiamond.requireOwner();
        require(_init == address(0), "Guarded: init delegatecall forbidden");
        require(_calldata.length == 0, "Guarded: init calldata forbidden");
        for (uint256 i; i < _diamondCut.length; ++i) {
            bytes4[] calldata selectors = _diamondCut[i].functionSelectors;
            for (uint256 j; j < selectors.length; ++j) {
                require(!_isCore(selectors[j]), "Guarded: reserved selector");
            }
        }
        LibDiamond.cut(_diamondCut, _init, _calldata);
    }

    function _isCore(bytes4 selector) private pure returns (bool) {
        return selector == IDiamondCut.diamondCut.selector || selector == IDiamondLoupe.facets.selector
            || selector == IDiamondLoupe.facetFunctionSelectors.selector
            || selector == IDiamondLoupe.facetAddresses.selector || selector == IDiamondLoupe.facetAddress.selector
            || selector == IERC165.supportsInterface.selector || selector == IERC173.owner.selector
            || selector == IERC173.transferOwnership.selector;
    }
}
