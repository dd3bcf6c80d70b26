// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A contract whose views, slots and events are whatever it is told: what a watch of contracts is tried on.
///
/// Four bytes are a view: the word at slot `selector` is how many words follow it as the answer. Anything else
/// is `(topics, data, slots, values)`: one event, if it has topics, and then the slots.
contract Watched {
    fallback() external payable {
        if (msg.data.length == 4) {
            assembly ("memory-safe") {
                let key := shr(224, calldataload(0))
                let words := sload(key)
                if iszero(words) { revert(0, 0) }
                let free := mload(0x40)
                for { let at := 0 } lt(at, words) { at := add(at, 1) } {
                    mstore(add(free, shl(5, at)), sload(add(add(key, 1), at)))
                }
                return(free, shl(5, words))
            }
        }
        (bytes32[] memory topics, bytes memory data, bytes32[] memory slots, bytes32[] memory values) =
            abi.decode(msg.data, (bytes32[], bytes, bytes32[], bytes32[]));
        assembly ("memory-safe") {
            let from := add(data, 32)
            let size := mload(data)
            switch mload(topics)
            case 1 { log1(from, size, mload(add(topics, 32))) }
            case 2 { log2(from, size, mload(add(topics, 32)), mload(add(topics, 64))) }
            case 3 { log3(from, size, mload(add(topics, 32)), mload(add(topics, 64)), mload(add(topics, 96))) }
            let count := mload(slots)
            for { let at := 0 } lt(at, count) { at := add(at, 1) } {
                let step := shl(5, add(at, 1))
                sstore(mload(add(slots, step)), mload(add(values, step)))
            }
        }
    }
}
