// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";

/// The public feedback log: anyone may append plain text, nobody may change an entry.
contract FeedbackFacet {
    struct Entry {
        address sender;
        uint64 timestamp;
        string text;
    }

    struct Layout {
        Entry[] entries;
    }

    /// keccak256("localharness.feedback.storage.v1")
    bytes32 private constant SLOT = 0x7824255a151f5f954c05ae6429e6e65875a794041d7cbaf472ed0f13b3621ff2;

    /// Bytes of UTF-8, not characters.
    uint256 private constant MAX_LENGTH = 2048;

    event FeedbackSubmitted(address indexed sender, uint256 timestamp, string text);
    event FeedbackCleared(uint256 cleared);

    error EmptyFeedback();
    error FeedbackTooLong(uint256 length);

    function submitFeedback(string calldata text) external {
        uint256 length = bytes(text).length;
        if (length == 0) revert EmptyFeedback();
        if (length > MAX_LENGTH) revert FeedbackTooLong(length);
        _store().entries.push(Entry(msg.sender, uint64(block.timestamp), text));
        emit FeedbackSubmitted(msg.sender, block.timestamp, text);
    }

    function feedbackCount() external view returns (uint256) {
        return _store().entries.length;
    }

    function feedbackAt(uint256 index) external view returns (address sender, uint64 timestamp, string memory text) {
        Entry storage entry = _store().entries[index];
        return (entry.sender, entry.timestamp, entry.text);
    }

    /// Clamped at the end; `start + count` is checked arithmetic and panics on overflow.
    function feedbackRange(uint256 start, uint256 count)
        external
        view
        returns (address[] memory senders, uint64[] memory timestamps, string[] memory texts)
    {
        Entry[] storage entries = _store().entries;
        uint256 total = entries.length;
        if (start >= total) return (senders, timestamps, texts);
        uint256 end = start + count;
        if (end > total) end = total;
        uint256 size = end - start;
        senders = new address[](size);
        timestamps = new uint64[](size);
        texts = new string[](size);
        for (uint256 i; i < size; ++i) {
            Entry storage entry = entries[start + i];
            senders[i] = entry.sender;
            timestamps[i] = entry.timestamp;
            texts[i] = entry.text;
        }
    }

    /// Indices restart at 0 afterwards.
    function clearFeedback() external {
        LibDiamond.requireOwner();
        uint256 cleared = _store().entries.length;
        delete _store().entries;
        emit FeedbackCleared(cleared);
    }

    function _store() private pure returns (Layout storage l) {
        assembly ("memory-safe") {
            l.slot := SLOT
        }
    }
}
