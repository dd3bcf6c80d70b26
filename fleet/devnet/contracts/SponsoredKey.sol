// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Code of a throwaway key while its run acts (EIP-7702): its one sponsor calls through it, each call once.
/// The fleet deploys it with its sponsor's address in the place of SPONSOR (fleet/chain/signing/delegate.py).
contract SponsoredKey {
    address private constant SPONSOR = 0x9FA452a3f3fB3e8aC81732Ce6feEA731fcdc13B5;

    /// The number of the next call: the same call, signed twice, is made once.
    uint256 private next;

    error NotTheSponsor();
    error AnotherCall(uint256 next);

    receive() external payable {}

    /// Calls `to` under the key's name, without value.
    function run(uint256 number, address to, bytes calldata data) external returns (bytes memory) {
        if (msg.sender != SPONSOR) revert NotTheSponsor();
        if (number != next) revert AnotherCall(next);
        next = number + 1;
        (bool done, bytes memory answer) = to.call(data);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        return answer;
    }

    /// A name that is minted safely asks its new owner, when that has code.
    function onERC721Received(address, address, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC721Received.selector;
    }
}
