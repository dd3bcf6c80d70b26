// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDiamondCut, IDiamondLoupe, IERC165, IERC173} from "./IDiamond.sol";
import {LibDiamond} from "./LibDiamond.sol";
import {LibToken} from "./LibToken.sol";

/// Runs once, by delegatecall from the diamond's constructor.
contract DiamondInit {
    function init(address token) external {
        LibToken.store().token = token;
        LibDiamond.Layout storage l = LibDiamond.store();
        l.interfaces[type(IERC165).interfaceId] = true;
        l.interfaces[type(IERC173).interfaceId] = true;
        l.interfaces[type(IDiamondCut).interfaceId] = true;
        l.interfaces[type(IDiamondLoupe).interfaceId] = true;
    }
}
