// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDiamondCut, IERC173} from "./IDiamond.sol";

/// Routing table, supported interfaces and owner of the diamond.
library LibDiamond {
    /// keccak256("diamond.standard.diamond.storage")
    bytes32 internal constant SLOT = 0xc8fcad8db84d3cc18b4c41d551ea0ee66dd599cde068d998e57d5e09332c131c;

    struct Route {
        address facet;
        uint96 position; // in listings[facet].selectors
    }

    struct Listing {
        bytes4[] selectors;
        uint256 position; // in facets
    }

    struct Layout {
        mapping(bytes4 => Route) routes;
        mapping(address => Listing) listings;
        address[] facets;
        mapping(bytes4 => bool) interfaces;
        address owner;
    }

    function store() internal pure returns (Layout storage l) {
        assembly ("memory-safe") {
            l.slot := SLOT
        }
    }

    function requireOwner() internal view {
        require(msg.sender == store().owner, "LibDiamond: not owner");
    }

    function setOwner(address newOwner) internal {
        Layout storage l = store();
        emit IERC173.OwnershipTransferred(l.owner, newOwner);
        l.owner = newOwner;
    }

    /// Applies cuts, then runs `init` by delegatecall when there is one (only the constructor may pass one).
    function cut(IDiamondCut.FacetCut[] memory cuts, address init, bytes memory data) internal {
        for (uint256 i; i < cuts.length; ++i) {
            bytes4[] memory selectors = cuts[i].functionSelectors;
            require(selectors.length > 0, "LibDiamond: no selectors");
            for (uint256 j; j < selectors.length; ++j) {
                _apply(cuts[i].action, cuts[i].facetAddress, selectors[j]);
            }
        }
        emit IDiamondCut.DiamondCut(cuts, init, data);
        if (init == address(0)) return;
        require(init.code.length > 0, "LibDiamond: no code");
        (bool ok, bytes memory answer) = init.delegatecall(data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(answer, 0x20), mload(answer))
            }
        }
    }

    function _apply(IDiamondCut.FacetCutAction action, address facet, bytes4 selector) private {
        address old = store().routes[selector].facet;
        if (action == IDiamondCut.FacetCutAction.Add) {
            require(old == address(0), "LibDiamond: selector exists");
            _add(facet, selector);
        } else if (action == IDiamondCut.FacetCutAction.Replace) {
            require(old != address(0), "LibDiamond: selector unknown");
            require(old != facet, "LibDiamond: same facet");
            _remove(old, selector);
            _add(facet, selector);
        } else {
            require(facet == address(0), "LibDiamond: remove names no facet");
            require(old != address(0), "LibDiamond: selector unknown");
            _remove(old, selector);
        }
    }

    function _add(address facet, bytes4 selector) private {
        require(facet.code.length > 0, "LibDiamond: no code");
        Layout storage l = store();
        Listing storage listing = l.listings[facet];
        if (listing.selectors.length == 0) {
            listing.position = l.facets.length;
            l.facets.push(facet);
        }
        l.routes[selector] = Route(facet, uint96(listing.selectors.length));
        listing.selectors.push(selector);
    }

    function _remove(address facet, bytes4 selector) private {
        Layout storage l = store();
        Listing storage listing = l.listings[facet];
        uint96 position = l.routes[selector].position;
        bytes4 last = listing.selectors[listing.selectors.length - 1];
        listing.selectors[position] = last;
        l.routes[last].position = position;
        listing.selectors.pop();
        delete l.routes[selector];
        if (listing.selectors.length == 0) {
            address lastFacet = l.facets[l.facets.length - 1];
            l.facets[listing.position] = lastFacet;
            l.listings[lastFacet].position = listing.position;
            l.facets.pop();
            delete l.listings[facet];
        }
    }
}
