// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A contract without a loupe whose words no dictionary has: poles, each with a bearer, a mark and a pennant.
/// Each bit of `faults` plants one fault; without any it is clean.
contract Pennants {
    uint256 private immutable faults;

    constructor(uint256 planted) {
        faults = planted;
    }

    modifier unless(uint256 fault, bool holds) {
        require(faults & fault != 0 || holds, "pennants: not yours");
        _;
    }

    event Hoisted(uint256 indexed id, bytes32 to);
    event Chalked(uint256 indexed id, address indexed by);

    uint256 private tally;
    mapping(uint256 => address) private bearers;
    mapping(uint256 => bytes32) private pennants;
    mapping(uint256 => bytes32) private marks;
    mapping(bytes32 => uint256) private poles;
    mapping(uint256 => bytes32) private chalks;
    mapping(uint256 => uint256) private wards;
    mapping(uint256 => bytes32) private walls;
    mapping(uint256 => uint256) private bids;
    address private steward = msg.sender;
    uint256 private tide = 50;
    uint256 private guess = 50;

    function plantPole(bytes32 mark) external returns (uint256 id) {
        require(poles[mark] == 0 && mark != 0, "pennants: planted");
        id = ++tally;
        bearers[id] = msg.sender;
        marks[id] = mark;
        poles[mark] = id;
        pennants[id] = keccak256(abi.encode(mark));
        wards[id] = id * 7;
        bids[id] = 100;
    }

    function hoistPennant(uint256 id, bytes32 to) external unless(1, bearers[id] == msg.sender) {
        require(to != 0, "pennants: no pennant");
        pennants[id] = to;
        emit Hoisted(id, to);
    }

    function handPole(uint256 id, address heir) external unless(2, bearers[id] == msg.sender) {
        bearers[id] = heir;
    }

    /// For anyone: it says who chalked.
    function chalkPole(uint256 id, bytes32 words) external {
        require(bearers[id] != address(0), "pennants: no pole");
        chalks[id] = words;
        emit Chalked(id, msg.sender);
    }

    /// For anyone, and nothing says who: a wall beside the pole.
    function scrawl(uint256 id, bytes32 words) external {
        walls[id] = words;
    }

    /// For anyone, but only upwards.
    function outbid(uint256 id, uint256 points) external {
        require(points > bids[id], "pennants: too low");
        bids[id] = points;
    }

    function raiseTide(uint256 level) external {
        require(msg.sender == steward, "pennants: not the steward");
        tide = level;
    }

    function turnTide(uint256 level) external unless(4, msg.sender == steward) {
        tide = level;
    }

    /// For anyone: the last answer of a guessing game.
    function guessTide(uint256 level) external {
        guess = level;
    }

    function cry(string calldata words) external view returns (bytes32) {
        require(bytes(words).length <= (faults & 8 != 0 ? 81 : 80), "pennants: too loud");
        return keccak256(bytes(words));
    }

    function loudestCry() external pure returns (uint256) {
        return 80;
    }

    function bearerAt(uint256 id) external view returns (address) {
        return bearers[id];
    }

    function pennantAt(uint256 id) external view returns (bytes32) {
        return pennants[id];
    }

    function markAt(uint256 id) external view returns (bytes32) {
        return marks[id];
    }

    function poleMarked(bytes32 mark) external view returns (uint256) {
        return faults & 16 != 0 && poles[mark] == 4 ? 2 : poles[mark];
    }

    function chalkAt(uint256 id) external view returns (bytes32) {
        return chalks[id];
    }

    function wardAt(uint256 id) external view returns (uint256) {
        return wards[id];
    }

    function wardOver(uint256 pole) external view returns (uint256) {
        return wards[faults & 32 != 0 && pole == 3 ? 1 : pole];
    }

    function wallAt(uint256 id) external view returns (bytes32) {
        return walls[id];
    }

    function bidAt(uint256 id) external view returns (uint256) {
        return bids[id];
    }

    function stewardNow() external view returns (address) {
        return steward;
    }

    function tideNow() external view returns (uint256) {
        return tide;
    }

    function guessNow() external view returns (uint256) {
        return guess;
    }

    function polesPlanted() external view returns (uint256) {
        return tally;
    }
}
