// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";
import {LibToken} from "./LibToken.sol";

/// Prepaid credit for agent calls, in wei of the token; the meter (the proxy's key) takes what a call costs.
contract CreditFacet {
    bytes32 private constant SLOT = keccak256("localharness.credit.storage.v1");
    uint256 private constant DAILY = 10e18;

    struct Layout {
        address meter;
        mapping(address => uint256) creditOf;
        mapping(address => uint256) claimableFrom; // UTC day number
    }

    event CreditsDeposited(address indexed account, uint256 amount);
    event DailyClaimed(address indexed account, uint256 amount);
    event Metered(address indexed account, uint256 amount);
    event MeterUpdated(address indexed previousMeter, address indexed newMeter);

    error NotMeter();
    error InsufficientCredits();
    error NotConfigured();
    error AlreadyClaimed();

    function creditOf(address account) external view returns (uint256) {
        return _store().creditOf[account];
    }

    /// Prepayment is not refundable: the tokens belong to the treasury at once.
    function depositCredits(uint256 amount) external {
        if (LibToken.store().token == address(0)) revert NotConfigured();
        _store().creditOf[msg.sender] += amount;
        emit CreditsDeposited(msg.sender, amount);
        require(LibToken.pull(msg.sender, amount), "credits: transfer failed");
    }

    function meter(address account, uint256 amount) external {
        Layout storage l = _store();
        if (l.meter == address(0)) revert NotConfigured();
        if (msg.sender != l.meter) revert NotMeter();
        uint256 credit = l.creditOf[account];
        if (credit < amount) revert InsufficientCredits();
        l.creditOf[account] = credit - amount;
        emit Metered(account, amount);
    }

    /// Once per UTC day and address.
    function claimDaily() external {
        Layout storage l = _store();
        uint256 today = block.timestamp / 1 days;
        if (today < l.claimableFrom[msg.sender]) revert AlreadyClaimed();
        l.claimableFrom[msg.sender] = today + 1;
        l.creditOf[msg.sender] += DAILY;
        emit DailyClaimed(msg.sender, DAILY);
    }

    function meterAddress() external view returns (address) {
        return _store().meter;
    }

    function setMeter(address newMeter) external {
        LibDiamond.requireOwner();
        emit MeterUpdated(_store().meter, newMeter);
        _store().meter = newMeter;
    }

    function _store() private pure returns (Layout storage l) {
        bytes32 slot = SLOT;
        assembly ("memory-safe") {
            l.slot := slot
        }
    }
}
