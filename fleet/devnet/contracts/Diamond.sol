// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDiamondCut} from "./IDiamond.sol";
import {LibDiamond} from "./LibDiamond.sol";

/// EIP-2535 diamond: forwards every call to the facet that owns its selector.
contract Diamond {
    constructor(address owner, IDiamondCut.FacetCut[] memory cuts, address init, bytes memory data) {
        LibDiamond.setOwner(owner);
        LibDiamond.cut(cuts, init, data);
    }

    fallback() external payable {
        address facet = LibDiamond.store().routes[msg.sig].facet;
        require(facet != address(0), "Diamond: function not found");
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            let ok := delegatecall(gas(), facet, free, calldatasize(), 0, 0)
            returndatacopy(free, 0, returndatasize())
            switch ok
            case 0 { revert(free, returndatasize()) }
            default { return(free, returndatasize()) }
        }
    }
}
