// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {FeedbackFacet} from "./FeedbackFacet.sol";

/// Many log entries in one transaction, for benches. Their sender is this contract.
contract FeedbackSeeder {
    function post(FeedbackFacet log, string[] calldata texts) external {
        for (uint256 i; i < texts.length; ++i) {
            log.submitFeedback(texts[i]);
        }
    }
}
