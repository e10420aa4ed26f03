# SPDX-License-Identifier: MIT
"""usage: child.py CHECK

Makes one check. The last line that it prints is its result, in JSON; what else is printed
goes to the log.
"""

import json
import sys
import traceback

import checks
import driver


def make(check):
    try:
        driver.need_gpu()
        figures = check.function()
    except checks.SkipError as reason:
        return {"result": "skipped", "detail": str(reason)}
    except Exception as error:
        traceback.print_exc()
        where = traceback.extract_tb(error.__traceback__)[-1]
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.name == check.function.__name__:
                where = frame
        detail = f"{type(error).__name__}: {error} (line {where.lineno}: {where.line})"
        return {"result": "failed", "detail": detail}
    return {"result": "recorded" if check.recorded else "passed", **(figures or {})}


def main():
    result = make(checks.load()[sys.argv[1]])
    sys.stderr.flush()
    print()
    print(json.dumps(result, default=str), flush=True)


main()
