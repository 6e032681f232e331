"""Follows the log from its beginning and prints the first events, over every restart and cut.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… python follow.py 2
"""

import itertools
import sys

import chips

with chips.Client() as people:
    for event in itertools.islice(people.stream(after=0), int(sys.argv[1])):
        match event:
            case chips.AskEvent():
                print(event.seq, "asked:", event.questions[0].prompt)
            case chips.AnsweredEvent():
                print(event.seq, "closed by", event.answered_by)
            case _:
                print(event.seq, event.type)
