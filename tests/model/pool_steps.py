# SPDX-License-Identifier: MIT
"""The steps of the processes of a pool, see tests/model/pool."""

from collections import namedtuple

FREE = -1  # of a lock
REAPER = 100  # plus who has the lock of a seat that isn't its own
WRITING = 1 << 62
GONE = -1
NEVER, USED, UNUSED = 2, 1, 0  # the age of a slot

# Shared memory: tuples of slots, of places and of seats. @get is the key of each process's get that
# must find its entry; @kills and @abandons are what may happen still.
Shared = namedtuple(
    "Shared",
    "word number count maker place key data index waiting wakes lock seats kills abandons get",
)
# A process: its label, which of its tasks, seat, the slot it is at, a place or a count or the seat
# that it frees, the slot's number as read, the wakes as read, whether it sets waiting, the ages as
# read, the first slot of its room, gets until it gives up, seats that it leaves alone, what comes
# afterwards, and whether room is free.
Process = namedtuple(
    "Process", "at task seat slot i number seen waits ages room tries closed back free"
)
NEW = Process("join", 0, -1, 0, 0, 0, 0, False, (), 0, 0, 0, "", False)


class BrokenError(Exception):
    """A promise of the protocol."""


def put(items, index, value):
    return items[:index] + (value,) + items[index + 1 :]


def read_tasks(text):
    """Pairs of a key and a count, which is 0 to get the key, and -1 to remove it."""
    tasks = []
    text = text.removeprefix("R")
    while text:
        if text[0] == "x":
            tasks.append((ord(text[1]) - ord("A") + 1, -1))
            text = text[2:]
            continue
        key = ord(text[0].upper()) - ord("A") + 1
        if text[0].islower():
            tasks.append((key, 0))
            text = text[1:]
        else:
            tasks.append((key, int(text[1])))
            text = text[2:]
    return tuple(tasks)


class Steps:
    def __init__(self, options):
        self.o = options
        self.slots = range(options.slots)
        self.seats = range(options.seats)
        self.tasks = [read_tasks(text) for text in options.processes]
        self.reads = [text.startswith("R") for text in options.processes]
        self.hashes = (None, *(int(text) for text in options.hashes.split(",")))
        steps = (name for name in dir(self) if name.startswith("s_"))
        self.steps = {name[2:]: getattr(self, name) for name in steps}

    def start(self):
        o = self.o
        none = (0,) * o.slots
        g = Shared(
            none, none, none, none, none, none, none, (0,) * o.index, 0, 0, FREE,
            (FREE,) * o.seats, o.kills, o.abandons, (0,) * len(self.tasks),
        )
        return g, (NEW,) * len(self.tasks)

    def mutant(self, name):
        return self.o.mutant == name

    def key(self, p, who):
        return self.tasks[who][p.task][0]

    def count(self, p, who):
        return self.tasks[who][p.task][1]

    # Facts about a slot, and the index.

    def is_entry(self, g, slot):
        return g.maker[slot] or g.number[slot]

    def can_be_got(self, g, slot):
        return g.number[slot] and g.word[slot] != WRITING

    def free_room(self, g, count):
        free = [True] * self.o.slots
        for slot in self.slots:
            if self.is_entry(g, slot):
                for at in range(slot, slot + max(g.count[slot], 1)):
                    free[at] = False
        return any(all(free[first : first + count]) for first in range(self.o.slots - count + 1))

    # The key of a record is negative once its entry was removed; its hash stays.
    def index_word(self, key, slot):
        return self.hashes[abs(key)] * 8 + slot + 1

    def index_slot(self, word, key):
        """The slot of the index's word, if it has the key's hash."""
        if word > 0 and (word - 1) // 8 == self.hashes[key]:
            return (word - 1) % 8
        return None

    def left_by_the_dead(self, g, seat):
        bit = 1 << seat
        return g.seats[seat] == FREE and any(
            g.maker[slot] == seat + 1 or g.word[slot] & bit for slot in self.slots
        )

    # A process joins, and leaves.

    def done(self, p):
        return NEW._replace(at="idle", task=p.task + 1, seat=p.seat)

    def s_end(self, g, p, who):
        return ()

    s_killed = s_end

    def s_join(self, g, p, who):
        closed = p.closed
        if self.reads[who] and self.mutant("reader_looks_before_it_locks") and not p.waits:
            closed = sum({1 << maker - 1 for maker in g.maker if maker})
            yield g, p._replace(closed=closed, waits=True)
            return
        free = [seat for seat in self.seats if g.seats[seat] == FREE]
        for seat in free:
            if not closed >> seat & 1:
                now = g._replace(seats=put(g.seats, seat, who))
                after = "join_closed" if self.reads[who] else "free_maker"
                yield now, p._replace(at=after, seat=seat, i=seat, waits=False)
                return
        if free:
            yield g, NEW._replace(at="end")

    # A reader can't end what a maker has left, and would seem to be that maker.
    def s_join_closed(self, g, p, who):
        looks = not (
            self.mutant("reader_takes_a_makers_seat")
            or self.mutant("reader_looks_before_it_locks")
        )
        if looks and p.seat + 1 in g.maker:
            yield (
                g._replace(seats=put(g.seats, p.seat, FREE)),
                p._replace(at="join", seat=-1, i=0, closed=p.closed | 1 << p.seat),
            )
        else:
            yield g, p._replace(at="clear_word", closed=0)

    def s_idle(self, g, p, who):
        if p.task == len(self.tasks[who]):
            yield g._replace(seats=put(g.seats, p.seat, FREE)), NEW._replace(at="end")
        elif self.count(p, who):
            yield g, p._replace(at="make_lock")
        else:
            key = self.key(p, who)
            if any(self.can_be_got(g, slot) and g.key[slot] == key for slot in self.slots):
                g = g._replace(get=put(g.get, who, key))
            yield g, p._replace(at="get_index", tries=2 * self.o.slots)

    # Ends what the seat's last process has left: by the next one, or by a maker. The seat is @i.

    def s_free_maker(self, g, p, who):
        for slot in self.slots:
            if g.maker[slot] != p.i + 1:
                continue
            if self.mutant("join_clears_no_maker") and p.i == p.seat:
                break
            if g.word[slot] == WRITING:
                yield g, p._replace(at="abandon_number", slot=slot, back="free_maker")
            else:
                yield g._replace(maker=put(g.maker, slot, 0)), p
            return
        yield from self.s_clear_word(g, p._replace(at="clear_word", slot=0, back=""), who)

    def s_clear_word(self, g, p, who):
        clears = not (self.mutant("join_clears_no_lease") and p.i == p.seat)
        for slot in self.slots:
            if g.word[slot] >> p.i & 1 and clears:
                yield (
                    g._replace(word=put(g.word, slot, g.word[slot] & ~(1 << p.i))),
                    p._replace(at="clear_word"),
                )
                return
        if p.i == p.seat:
            yield g, p._replace(at="idle", i=0)
        else:
            yield g._replace(seats=put(g.seats, p.i, FREE)), p._replace(at="make_check", i=0)

    # A get, without a lock.

    def give_up(self, g, p, who):
        if g.get[who] and p.tries:
            raise BrokenError(f"process {who} misses its key, which is there")
        return self.done(p)

    def s_get_index(self, g, p, who):
        key = self.key(p, who)
        word = g.index[(self.hashes[key] + p.i) % self.o.index] if p.i < self.o.index else 0
        if not word or not p.tries:
            yield g, self.give_up(g, p, who)
            return
        slot = self.index_slot(word, key)
        if slot is None:
            yield g, p._replace(i=p.i + 1)
        else:
            yield g, p._replace(at="get_number", i=p.i + 1, slot=slot, tries=p.tries - 1)

    def look_on(self, p):
        return p._replace(at="get_index", slot=0, number=0, back="")

    def look_again(self, p):
        return self.look_on(p)._replace(i=0)

    def s_get_number(self, g, p, who):
        number = g.number[p.slot]
        yield g, p._replace(at="take_word", number=number) if number else self.look_on(p)

    def s_take_word(self, g, p, who):
        word, bit = g.word[p.slot], 1 << p.seat
        if word & WRITING:
            yield g, self.look_on(p)
        elif word & bit:
            raise BrokenError(f"process {who} has a lease, and holds nothing")
        else:
            yield (
                g._replace(word=put(g.word, p.slot, word | bit)),
                p._replace(at="take_number"),
            )

    def s_take_number(self, g, p, who):
        if g.number[p.slot] == p.number or self.mutant("number_is_read_once"):
            yield g, p._replace(at="get_key", number=0)
        else:
            yield g, p._replace(at="release_word", number=0, back="look_again")

    def s_get_key(self, g, p, who):
        if g.key[p.slot] == self.key(p, who) or self.mutant("key_is_not_compared"):
            g = g._replace(get=put(g.get, who, 0))
            yield g, p._replace(at="hold", i=g.count[p.slot], tries=0)
        else:
            yield g, p._replace(at="release_word", back="look_on")

    def s_hold(self, g, p, who):
        yield g, p._replace(at="release_word", i=0, back="done")

    def s_release_word(self, g, p, who):
        wakes = not (
            self.mutant("release_wakes_nobody") and p.back == "done"
            or self.mutant("undo_wakes_nobody") and p.back != "done"
        )
        now = g._replace(word=put(g.word, p.slot, g.word[p.slot] & ~(1 << p.seat)))
        yield now, p._replace(at="release_waiting") if wakes else self.go_back(p)

    # A process that has ended something looks whether another one waits.

    def go_back(self, p):
        if p.back == "hold":
            return p._replace(at="hold", back="")
        return getattr(self, p.back)(p)

    def s_release_waiting(self, g, p, who):
        yield g, p._replace(at="wake") if g.waiting else self.go_back(p)

    s_finish_waiting = s_abandon_waiting = s_release_waiting

    def s_wake(self, g, p, who):
        then = p._replace(at="wake_publish") if g.waiting else self.go_back(p)
        yield g._replace(waiting=0), then

    def s_wake_publish(self, g, p, who):
        yield g._replace(wakes=g.wakes + 1), self.go_back(p)

    # A maker waits.

    def s_sleep(self, g, p, who):
        if g.wakes != p.seen or g.kills < self.o.kills:
            yield g, p._replace(at="make_seen", seen=0)

    def s_make_seen(self, g, p, who):
        late = self.mutant("waiting_is_set_late")
        yield g, p._replace(at="make_lock" if late else "make_waiting", seen=g.wakes)

    def s_make_waiting(self, g, p, who):
        late = self.mutant("waiting_is_set_late")
        yield g._replace(waiting=1), p._replace(at="sleep" if late else "make_lock")

    # It has the lock from here on.

    def s_make_lock(self, g, p, who):
        if g.lock == FREE or self.mutant("lock_is_ignored"):
            yield g._replace(lock=who), p._replace(at="make_check", i=0)

    def unlock(self, p, back):
        return p._replace(at="make_unlock", slot=0, i=0, ages=(), free=False, back=back)

    def s_make_unlock(self, g, p, who):
        now = g._replace(lock=FREE)
        if p.back == "made":
            yield now, p._replace(at="made", slot=p.room, room=0, seen=0, waits=False, back="")
        elif p.back == "exists":
            yield now, self.done(p)
        elif not p.waits:
            yield now, p._replace(at="make_seen", waits=True, back="")
        else:
            late = self.mutant("waiting_is_set_late")
            yield now, p._replace(at="make_waiting" if late else "sleep", back="")

    # The call can't go on: it looks for the dead, once more after each that it has found.
    def fail(self, g, p):
        for seat in self.seats:
            dead = self.left_by_the_dead(g, seat)
            if self.mutant("reaps_the_living") and seat != p.seat:
                dead = seat + 1 in g.maker
            if dead:
                return p._replace(at="reap", slot=0, i=seat, ages=(), free=False)
        return self.unlock(p, "again")

    def s_reap(self, g, p, who):
        if g.seats[p.i] == FREE:
            now = g._replace(seats=put(g.seats, p.i, REAPER + who))
            yield now, p._replace(at="free_maker")
        elif self.mutant("reaps_the_living"):
            yield g, p._replace(at="free_maker")
        else:
            yield g, p._replace(at="make_check", i=0)

    # The index and the records are the holder's alone.
    def s_make_check(self, g, p, who):
        key = self.key(p, who)
        for i in range(p.i, self.o.index):
            word = g.index[(self.hashes[key] + i) % self.o.index]
            if not word:
                break
            slot = self.index_slot(word, key)
            if slot is not None and g.key[slot] == key:
                check = self.s_remove_number if self.count(p, who) < 0 else self.s_check_maker
                yield from check(g, p._replace(slot=slot, i=i + 1), who)
                return
        if self.count(p, who) < 0:
            yield g, self.unlock(p, "exists")
        else:
            yield g, self.look_for_room(g, p, who)

    # Looks at all three, the maker first: it finishes without the lock.
    def s_check_maker(self, g, p, who):
        making = bool(g.maker[p.slot]) and not self.mutant("taken_key_is_ignored")
        yield g, p._replace(at="check_number", room=making)

    def s_check_number(self, g, p, who):
        if g.number[p.slot]:
            yield g, p._replace(at="check_word")
        else:
            yield g, self.fail(g, p) if p.room else self.check(p)

    def s_check_word(self, g, p, who):
        if g.word[p.slot] != WRITING or self.mutant("half_evicted_exists"):
            if not self.can_be_got(g, p.slot):
                raise BrokenError(f"process {who} finds its key, which nobody can get")
            yield g, self.unlock(p, "exists")
        elif p.room:
            yield g, self.fail(g, p)
        else:
            yield g, p._replace(at="abandon_number", back="check")

    # Removes a finished entry: its key, then its place in the index. It goes unless it is held.

    def s_remove_number(self, g, p, who):
        finished = g.number[p.slot] or self.mutant("remove_takes_the_unfinished")
        yield g, p._replace(at="remove_word") if finished else self.check(p)

    def s_remove_word(self, g, p, who):
        if g.word[p.slot] == WRITING and not self.mutant("remove_takes_the_unfinished"):
            yield g, self.check(p)
        else:
            yield g, p._replace(at="remove_key")

    def s_remove_key(self, g, p, who):
        key = self.key(p, who)
        if not self.mutant("remove_keeps_the_key"):
            g = g._replace(key=put(g.key, p.slot, -key))
        get = tuple(0 if wanted == key else wanted for wanted in g.get)
        yield g._replace(get=get), p._replace(at="make_clear", back="remove")

    def s_remove_evict(self, g, p, who):
        if g.word[p.slot] & ~WRITING and not self.mutant("remove_takes_what_is_held"):
            yield g, self.unlock(p, "exists")
        else:
            now = g._replace(word=put(g.word, p.slot, WRITING))
            yield now, p._replace(at="make_evict_number", back="removed")

    def check(self, p):
        return p._replace(at="make_check", slot=0, back="", room=0)

    def look_for_room(self, g, p, who):
        free = self.free_room(g, self.count(p, who))
        return p._replace(at="make_room", slot=0, i=0, ages=(), free=free)

    # Of each slot whether it is an entry, and then whether somebody has leased it.
    def s_make_room(self, g, p, who):
        slot = len(p.ages)
        if self.mutant("number_is_looked_at_first"):
            if g.number[slot]:
                yield g, p._replace(at="make_age")
            else:
                yield g, p._replace(at="make_room_maker")
        elif g.maker[slot]:
            yield from self.aged(g, p, who, NEVER)
        elif g.number[slot]:
            yield g, p._replace(at="make_age")
        else:
            yield from self.aged(g, p, who, UNUSED)

    def s_make_room_maker(self, g, p, who):
        yield from self.aged(g, p, who, NEVER if g.maker[len(p.ages)] else UNUSED)

    def s_make_age(self, g, p, who):
        slot = len(p.ages)
        leased = g.maker[slot] or g.word[slot] & ~WRITING
        yield from self.aged(g, p, who, NEVER if leased else USED)

    def aged(self, g, p, who, age):
        slot = len(p.ages)
        ages = p.ages + (age,) * (max(g.count[slot], 1) if age != UNUSED else 1)
        if self.mutant("made_is_nobodys"):
            ages = tuple(UNUSED if g.maker[slot] else age for age in ages)
        p = p._replace(at="make_room", ages=ages)
        if len(ages) < self.o.slots:
            yield g, p
            return
        count = self.count(p, who)
        rooms = {
            first: max(ages[first : first + count])
            for first in self.starts(g, ages)
            if first + count <= self.o.slots
        }
        least = min(rooms.values())
        if least == NEVER:
            yield g, self.fail(g, p)
        for room, its in rooms.items():
            if its == least < NEVER:
                then = p._replace(room=room, ages=())
                yield g, self.clear_next(g, then, room, who)
                if not least:
                    break

    # Where rooms may begin: not in an entry.
    def starts(self, g, ages):
        slot = 0
        while slot < self.o.slots:
            yield slot
            entry = ages[slot] != UNUSED and not self.mutant("room_begins_in_an_entry")
            slot += max(g.count[slot], 1) if entry else 1

    def clear_next(self, g, p, slot, who):
        if slot == p.room + self.count(p, who):
            return p._replace(at="make_record", slot=0, free=False)
        return p._replace(at="make_evict" if g.number[slot] else "make_clear", slot=slot, i=0)

    def s_make_evict(self, g, p, who):
        word = g.word[p.slot]
        if word and (word != WRITING or self.mutant("evict_refuses_writing")):
            yield g, self.look_for_room(g, p, who)
            return
        if p.free and not word:
            raise BrokenError(f"process {who} evicts an entry, and has room")
        get = tuple(0 if key == g.key[p.slot] else key for key in g.get)
        after = "make_clear" if self.mutant("number_stays") else "make_evict_number"
        yield g._replace(word=put(g.word, p.slot, WRITING), get=get), p._replace(at=after)

    def s_make_evict_number(self, g, p, who):
        yield g._replace(number=put(g.number, p.slot, 0)), p._replace(at="make_clear")

    def s_make_clear(self, g, p, who):
        at = g.place[p.slot] - 1
        if at < 0:
            yield from self.s_make_place(g, p, who)
            return
        if g.index[at] == self.index_word(g.key[p.slot], p.slot):
            left = 0 if self.mutant("gone_is_empty") else GONE
            g = g._replace(index=put(g.index, at, left))
        yield g, p._replace(at="make_empty", i=at)

    def s_make_empty(self, g, p, who):
        ends = not g.index[(p.i + 1) % self.o.index] or self.mutant("gone_is_empty_too_early")
        if g.index[p.i] == GONE and ends:
            yield g._replace(index=put(g.index, p.i, 0)), p._replace(i=(p.i - 1) % self.o.index)
        else:
            yield from self.s_make_place(g, p, who)

    def s_make_place(self, g, p, who):
        if p.back == "remove":
            yield g._replace(place=put(g.place, p.slot, 0)), p._replace(at="remove_evict", i=0)
            return
        now = g._replace(place=put(g.place, p.slot, 0), count=put(g.count, p.slot, 0))
        yield now, p._replace(at="make_zero", i=0)

    # A lease that is taken between the two is undone by whoever takes it.
    def s_make_zero(self, g, p, who):
        if g.word[p.slot] & ~WRITING:
            yield g, p._replace(at="make_zero_word")
        else:
            yield from self.s_make_zero_word(g, p, who)

    def s_make_zero_word(self, g, p, who):
        now = g._replace(word=put(g.word, p.slot, 0))
        if p.back == "removed":
            yield now, self.unlock(p, "exists")
        else:
            yield now, self.clear_next(now, p, p.slot + 1, who)

    def s_make_record(self, g, p, who):
        key, slot = self.key(p, who), p.room
        for i in range(self.o.index):
            at = (self.hashes[key] + i) % self.o.index
            if g.index[at] <= 0:
                break
        else:
            raise BrokenError("the index is full")
        g = g._replace(key=put(g.key, slot, key), count=put(g.count, slot, self.count(p, who)))
        if not self.mutant("place_is_stored_late"):
            g = g._replace(place=put(g.place, slot, at + 1))
        yield g, p._replace(at="make_index", i=at)

    def s_make_index(self, g, p, who):
        word = self.index_word(self.key(p, who), p.room)
        late = self.mutant("place_is_stored_late")
        yield (
            g._replace(index=put(g.index, p.i, word)),
            p._replace(at="make_late_place") if late else p._replace(at="make_word", i=0),
        )

    def s_make_late_place(self, g, p, who):
        yield g._replace(place=put(g.place, p.room, p.i + 1)), p._replace(at="make_word", i=0)

    def s_make_word(self, g, p, who):
        yield g._replace(word=put(g.word, p.room, WRITING)), p._replace(at="make_maker")

    def s_make_maker(self, g, p, who):
        now = g._replace(maker=put(g.maker, p.room, p.seat + 1))
        yield now, p._replace(at="make_write")

    def s_make_write(self, g, p, who):
        return [(self.written(g, p.room, p, who, -1 - who), self.unlock(p, "made"))]

    def written(self, g, first, p, who, what):
        count = self.count(p, who)
        return g._replace(data=g.data[:first] + (what,) * count + g.data[first + count :])

    # It has the entry, and no lock.

    def s_made(self, g, p, who):
        yield self.written(g, p.slot, p, who, self.key(p, who)), p._replace(at="finish_number")
        if g.abandons:
            yield (
                g._replace(abandons=g.abandons - 1),
                p._replace(at="abandon_number", back="done"),
            )

    def s_finish_number(self, g, p, who):
        number = 1 if self.mutant("number_comes_again") else 2
        early = self.mutant("finish_maker_before_word")
        now = g._replace(number=put(g.number, p.slot, number))
        yield now, p._replace(at="finish_maker" if early else "finish_word")

    def s_finish_word(self, g, p, who):
        early = self.mutant("finish_maker_before_word")
        now = g._replace(word=put(g.word, p.slot, 1 << p.seat))
        yield now, self.finished(p, who) if early else p._replace(at="finish_maker")

    def s_finish_maker(self, g, p, who):
        early = self.mutant("finish_maker_before_word")
        now = g._replace(maker=put(g.maker, p.slot, 0))
        yield now, p._replace(at="finish_word") if early else self.finished(p, who)

    def finished(self, p, who):
        silent = self.mutant("finish_wakes_nobody")
        p = p._replace(at="finish_waiting", i=self.count(p, who), back="hold")
        return self.go_back(p) if silent else p

    # Of its own entry, of a dead maker's, or of what a dead one has begun to evict.

    def s_abandon_number(self, g, p, who):
        yield g._replace(number=put(g.number, p.slot, 0)), p._replace(at="abandon_word")

    def s_abandon_word(self, g, p, who):
        yield g._replace(word=put(g.word, p.slot, 0)), p._replace(at="abandon_maker")

    def s_abandon_maker(self, g, p, who):
        now = g._replace(maker=put(g.maker, p.slot, 0))
        if p.back == "free_maker":
            yield now, p._replace(at="free_maker", slot=0, back="")
        elif p.back == "check" or self.mutant("abandon_wakes_nobody"):
            yield now, self.go_back(p)
        else:
            yield now, p._replace(at="abandon_waiting")
