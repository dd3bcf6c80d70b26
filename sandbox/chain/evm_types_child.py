"""The child of `evm_types`: `evmole`, native code, on hostile bytes; codes on one line in, a line each out.

Started as a file, without the guest's modules; what it says is a claim that `evm_types` reads.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    sys.path.append(sys.argv[1])
    import evmole

    for code in json.loads(sys.stdin.readline()):
        try:
            found = evmole.contract_info(
                code, selectors=True, arguments=True, state_mutability=True, storage=True
            )
        except Exception:  # whatever it is: nothing is known of this code
            print("{}", flush=True)
            continue
        reads: dict[str, list[str]] = {}
        for record in found.storage or ():
            for selector in record.reads:
                reads.setdefault(selector, []).append(f"{record.slot}:{record.offset}")
        said = {
            one.selector: [one.arguments, one.state_mutability, sorted(set(reads.get(one.selector, ())))]
            for one in found.functions or ()
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
