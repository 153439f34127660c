#!/usr/bin/python3
"""A board that follows one table: an example for developers of display boards.

It is written from the text of the contract and shares nothing with the table
but MQTT. Four things the text left open and the table settled: through_round is
null before the first round, free hands count in state.counts, a sync without
arguments asks for the documents, and event is best subscribed first. It keeps the results, draws the bead plate and the big road by itself,
and compares them with each `roads` document of the table. What it sees goes to
stderr; at its end it prints a summary as JSON, and exits with 1 if its drawing
and the table's ever differed.

    apt-get install python3-paho-mqtt
    /usr/bin/python3 board.py --port 1883 --site house --table demo --rounds 20

It ends after --rounds, --until-shoe-ended, --timeout (exit code 2) or Ctrl-C.
"""

import argparse
import json
import queue
import random
import secrets
import sys
import time
from datetime import datetime, timezone

import paho.mqtt.client as mqtt

ROWS = 6             # of the bead plate and the big road
OFFLINE_S = 5        # not online for so long: no signal
SILENCE_S = 60       # nothing received for so long: no signal
STATE_S = 3          # no state for so long: ask for it
# event is first: a broker may take one name after the other, and what is told
# between state and event would be missed.
TOPICS = {"event": 1, "status": 1, "info": 1, "roads": 1, "insurance": 1, "state": 1, "health": 0}
SIDES = {"player": "P", "banker": "B", "tie": "T"}
FLAGS = {"player_pair": "p", "banker_pair": "b", "natural": "n"}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def cell(decided):
    """A round as the bead plate has it: P, B or T and its flags."""
    return SIDES[decided["outcome"]] + "".join(f for tag, f in FLAGS.items() if tag in decided.get("tags", []))


def big_road(bead):
    """Cells [col, row, side, ties, flags] and the number of ties before the first win."""
    cells, taken, leading = [], set(), 0
    start = col = row = -1  # start: column in which the streak began
    straight = True         # the streak has not turned right yet
    for side, flags in ((c[0], c[1:]) for c in bead):
        if side == "T":
            if cells:
                cells[-1][3] += 1
            else:
                leading += 1
            continue
        if cells and side == cells[-1][2]:
            if straight and row + 1 < ROWS and (col, row + 1) not in taken:
                row += 1
            else:
                straight, col = False, col + 1
        else:
            start += 1
            while (start, 0) in taken:
                start += 1
            col, row, straight = start, 0, True
        taken.add((col, row))
        cells.append([col, row, side, 0 if cells else leading, flags])
    return cells, leading


class Drawing:
    """The roads of one shoe, as far as this board knows its rounds."""

    def __init__(self, shoe_id, through=None, bead=()):
        self.shoe_id, self.through = shoe_id, through  # the last round that is over; None without one
        self.rounds = [[None, c] for c in bead]  # round number (None: adopted) and cell, in order

    def over(self, number):
        self.through = max(self.through or 0, number)

    def decide(self, e):
        self.over(e["round"])
        if "free_hand" not in e.get("tags", []):
            self.rounds.append([e["round"], cell(e)])

    def find(self, number):
        return next((r for r in self.rounds if r[0] == number), None)

    def correct(self, e):
        """False if the round is one that was adopted: only the table can draw it."""
        found = self.find(e["round"])
        if found:
            found[1] = cell(e)
        return found is not None or "free_hand" in e.get("tags", [])

    def void(self, number):
        self.over(number)
        self.rounds = [r for r in self.rounds if r[0] != number]

    def document(self):
        bead = [c for _, c in self.rounds]
        cells, leading = big_road(bead)
        return {"shoe_id": self.shoe_id, "through_round": self.through, "bead": bead,
                "lead_ties": leading, "big_road": cells}


class Board:
    """One table as this board knows it. It does no I/O but through sync."""

    def __init__(self, sync):
        self.sync = sync
        self.status, self.greyed = None, False
        self.not_online = self.heard = time.monotonic()  # since when; not_online is None while it is
        self.counts = dict.fromkeys(("gaps", "repeats", "adopted", "windows", "epochs", "no_signal", "syncs", "compared", "dropped"), 0)
        self.mismatches = []
        self.start_over(None)

    def start_over(self, epoch):
        self.epoch = epoch
        self.last = None         # every event up to here is in the picture; None without one
        self.ahead = 0           # the highest seq heard of
        self.gap = False         # something between last and ahead is missing
        self.waiting = {}        # events by seq that cannot be applied yet
        self.missed = set()      # seqs that a state stood for
        self.state = self.roads = self.insurance = self.drawing = None
        self.shoe = None         # its id
        self.drawn = 0           # seq of the latest event that changed the drawing
        self.results = {}        # by round_id
        self.ended = False       # the shoe
        self.window = None       # id of the insurance window shown
        self.want_state()

    def joined(self):
        """A subscription begins: what is retained comes again, in any order, and roads held from before may be of the past."""
        self.roads = None
        self.want_state()

    def want_state(self):
        self.ask_at = time.monotonic() + STATE_S

    def take(self, name, m):
        self.heard = time.monotonic()
        if m.get("schema", "").rpartition(".")[0] != name + "/1":
            self.mismatches.append(f"schema {m.get('schema')} on {name}")
            return
        if name in ("event", "state", "roads", "insurance", "health") and m["epoch"] != self.epoch:
            if self.epoch is not None:
                say("epoch", m["epoch"], "in place of", self.epoch)
            self.counts["epochs"] += 1
            self.start_over(m["epoch"])
        getattr(self, "on_" + name)(m)

    # Signal

    def on_status(self, m):
        self.status = m["state"]
        say("status", self.status, m.get("reason", ""))
        self.not_online = None if self.status == "online" else self.not_online or self.heard
        self.show_insurance()

    def on_info(self, m):
        pass

    def on_health(self, m):
        self.running_ahead(m["seq"])

    def tick(self):
        now = time.monotonic()
        grey = self.not_online is not None and now - self.not_online >= OFFLINE_S or now - self.heard >= SILENCE_S
        if grey != self.greyed:
            say("no signal" if grey else "signal")
            self.counts["no_signal"] += grey
        self.greyed = grey
        if self.ask_at and now >= self.ask_at:
            self.ask_at = now + 10 * STATE_S
            self.counts["syncs"] += 1
            self.sync()

    # Order

    def running_ahead(self, seq):
        """Something says that there are events up to seq."""
        self.ahead = max(self.ahead, seq)
        if self.last is not None and self.last < self.ahead and not self.gap:
            self.gap = True
            self.counts["gaps"] += 1
            say("gap: has", self.last, "of", self.ahead)
            self.want_state()

    def on_event(self, m):
        seq = m["seq"]
        if seq in self.missed:
            self.missed.discard(seq)
            self.keep(m)
        elif seq in self.waiting or self.last is not None and seq <= self.last:
            self.counts["repeats"] += 1
        else:
            self.waiting[seq] = m
            self.drain()
            self.running_ahead(seq)

    def drain(self):
        while self.last is not None and self.last + 1 in self.waiting:
            self.last += 1
            self.apply(self.waiting.pop(self.last))
        if self.last is not None and self.last >= self.ahead:
            self.gap = False

    def on_state(self, m):
        seq = m["seq"]
        if self.last is None or seq > self.last:
            self.running_ahead(seq)
            self.adopt(m)
        if seq == self.last:
            self.state, self.ask_at = m, None
            self.check_counts()

    def adopt(self, state):
        """Takes the state in place of the events up to it."""
        seq = state["seq"]
        self.counts["adopted"] += 1
        kept = sorted(s for s in self.waiting if s <= seq)
        for old in kept:
            self.keep(self.waiting.pop(old))
        if self.last is not None:
            self.missed.update(set(range(self.last + 1, seq + 1)).difference(kept))
        self.state, self.last, self.ended = state, seq, state["phase"] == "last_round_over"
        self.shoe = state["shoe"]["id"] if state["shoe"] else None
        self.drawing, self.drawn = None, 0
        if self.roads and self.roads["seq"] <= seq:
            self.draw(self.roads)
        self.drain()

    def apply(self, e):
        ev = e["ev"]
        self.keep(e)
        if ev == "shoe.loaded":
            self.ended = False
            self.shoe = e["shoe_id"]
            self.drawing, self.drawn = Drawing(self.shoe), e["seq"]
        elif ev == "shoe.ended":
            self.ended = True
        elif ev in ("round.decided", "round.corrected", "round.voided"):
            self.drawn = e["seq"]
            if self.drawing is None:
                return
            if ev == "round.decided":
                self.drawing.decide(e)
            elif ev == "round.voided":
                self.drawing.void(e["round"])
            elif not self.drawing.correct(e):
                self.drawing = None

    def keep(self, e):
        """Keeps what a round came to; an event that came late still counts here."""
        if e["ev"] not in ("round.decided", "round.corrected", "round.voided"):
            return
        old = self.results.get(e["round_id"])
        if old and e["seq"] < old["seq"]:
            return
        result = {"seq": e["seq"], "rev": e.get("rev", 0), "outcome": e.get("outcome", "void")}
        for name in ("player", "banker", "tags", "why"):
            if name in e:
                result[name] = e[name]
        self.results[e["round_id"]] = result
        say(e["round_id"], *(result.get(n, "") for n in ("player", "banker", "outcome", "tags", "why")))

    # Roads

    def on_roads(self, m):
        if self.roads and m["seq"] < self.roads["seq"]:
            return
        self.roads = m
        if self.last is None:
            return
        self.running_ahead(m["seq"])
        if m["seq"] <= self.last:  # otherwise a state follows, or the events
            self.draw(m)

    def draw(self, m):
        """Compares the table's roads with this board's, or takes them in place of them."""
        if m["seq"] < self.drawn:
            return  # a newer one follows
        if self.drawing is not None:
            self.counts["compared"] += 1
            for name, value in self.drawing.document().items():
                if m[name] != value:
                    self.differs(f"roads {name} at seq {m['seq']}: table {m[name]}, board {value}")
                    self.drawing = None
        if self.drawing is None and m["shoe_id"] == self.shoe:
            self.drawing = Drawing(m["shoe_id"], m["through_round"], m["bead"])
            self.drawn = m["seq"]
            if self.drawing.document()["big_road"] != m["big_road"]:
                self.differs(f"big_road at seq {m['seq']} is not that of its own bead plate")

    def check_counts(self):
        """Free hands count but are not on the roads; without one the bead plate has all rounds."""
        counts = self.state["counts"]
        if self.drawing is None or counts["rounds"] != len(self.drawing.rounds):
            return
        for name, letter in SIDES.items():
            drawn = sum(c[0] == letter for _, c in self.drawing.rounds)
            if counts[name] != drawn:
                self.differs(f"state counts.{name} at seq {self.last}: {counts[name]}, on the bead plate {drawn}")

    def differs(self, what):
        self.mismatches.append(what)
        say("mismatch:", what)

    # Insurance

    def on_insurance(self, m):
        self.insurance = m
        self.show_insurance()

    def show_insurance(self):
        """A window is open only while the table says so and is online."""
        m = self.insurance
        shown = m["window_id"] if m and m["state"] == "open" and self.status == "online" else None
        if shown == self.window:
            return
        if self.window is not None:
            say("insurance", self.window, "closed" if self.status == "online" else "closed by this board: the table is not online")
        if shown is not None:
            self.counts["windows"] += 1
            say("insurance", shown, "open:", ", ".join(f"{o['side']} {o['wins_on']} {o['pays']}" for o in m["offers"]))
        self.window = shown

    def complete(self):
        """The picture is that of the latest state: nothing is missing."""
        return self.state is not None and self.state["seq"] == self.last and not self.gap

    def summary(self):
        names = ("shoe_id", "through_round", "bead", "lead_ties", "big_road")
        return {"epoch": self.epoch, "seq": self.last, "phase": self.state and self.state["phase"], "status": self.status,
                **self.counts, "mismatches": self.mismatches,
                "results": [{"round_id": i, **r} for i, r in sorted(self.results.items())],
                "drawn": self.drawing and self.drawing.document(),
                "received": self.roads and {n: self.roads[n] for n in names}}


class Link:
    """The connection to the broker. What arrives is read from inbox, by one thread."""

    def __init__(self, o):
        self.o, self.root, self.inbox = o, f"shoed/v1/{o.site}/{o.table}/", queue.Queue()
        self.topics = {"state": 1} if o.join_late else TOPICS
        v1 = [mqtt.CallbackAPIVersion.VERSION1] if hasattr(mqtt, "CallbackAPIVersion") else []
        self.client = mqtt.Client(*v1, client_id=f"{o.user}-{secrets.token_hex(6)}", clean_session=True)
        if o.password is not None:
            self.client.username_pw_set(o.user, o.password)
        self.client.on_connect = self.on_connect
        self.client.on_subscribe = lambda c, u, mid, granted: self.inbox.put(("granted", list(granted)))
        self.client.on_message = lambda c, u, m: self.inbox.put((m.topic[len(self.root):], m.payload))
        self.client.connect(o.host, o.port, keepalive=20)
        self.client.loop_start()

    def on_connect(self, client, userdata, flags, rc):
        if rc != 0:
            self.inbox.put(("refused", rc))
            return
        self.subscribe(self.topics)

    def subscribe(self, topics):
        self.topics = topics
        mine = {} if len(topics) == 1 else {f"rsp/{self.o.user}/sync": 1, f"replay/{self.o.user}": 1}
        self.client.subscribe([(self.root + name, qos) for name, qos in {**topics, **mine}.items()])

    def sync(self):
        say("no state: sync")
        self.client.publish(self.root + f"cmd/{self.o.user}/sync", json.dumps(command("no state")), qos=1)


def command(reason):
    """The body of a command without arguments."""
    now = datetime.now(timezone.utc)
    return {"schema": "cmd/1.0", "cmd_id": ulid(now), "issued_at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "ttl_ms": 10000, "args": {}, "reason": reason}


def ulid(now):
    n = int(now.timestamp() * 1000) << 80 | secrets.randbits(80)
    return "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[n >> 5 * i & 31] for i in range(25, -1, -1))


def options():
    p = argparse.ArgumentParser(description="Follow one table and check what it draws.")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=1883)
    p.add_argument("--site", default="house")
    p.add_argument("--table", default="demo")
    p.add_argument("--user", default="board")
    p.add_argument("--password")
    p.add_argument("--rounds", type=int, help="end after so many rounds have a result")
    p.add_argument("--until-shoe-ended", action="store_true")
    p.add_argument("--timeout", type=float, default=600, help="end after so many seconds, with exit code 2")
    p.add_argument("--drop", type=float, default=0, metavar="P", help="lose events with this probability, to see that gaps are noticed")
    p.add_argument("--seed", type=int, default=0, help="of --drop")
    p.add_argument("--join-late", type=int, metavar="N", help="look at nothing until the shoe has N rounds")
    return p.parse_args()


def follow(o, link, board):
    """Returns the exit code once the options say that it is enough."""
    chance, late, end = random.Random(o.seed), o.join_late, time.monotonic() + o.timeout
    while time.monotonic() < end:
        if late is None:
            board.tick()
        try:
            name, payload = link.inbox.get(timeout=0.1)
        except queue.Empty:
            continue
        if name == "refused":
            sys.exit(f"the broker refuses this board: code {payload}")
        elif name == "granted":
            if any(code == 0x80 for code in payload):
                sys.exit(f"the broker refuses a subscription: {payload}")
            say("following", link.root)
            board.joined()
        elif name.startswith(("rsp/", "replay/")):
            say(name, payload[:200].decode(errors="replace"))
        elif late is not None:
            if json.loads(payload)["counts"]["rounds"] >= late:
                late = None
                link.subscribe(TOPICS)
        elif name == "event" and chance.random() < o.drop:
            board.counts["dropped"] += 1
        elif name in TOPICS:
            board.take(name, json.loads(payload))
            if name == "state" and board.complete() and (
                    o.until_shoe_ended and board.ended or o.rounds and len(board.results) >= o.rounds):
                return 0
    return 2


def main():
    o = options()
    try:
        link = Link(o)
    except OSError as e:
        sys.exit(f"no connection to the broker at {o.host}:{o.port}: {e}; is it running, and is that its address?")
    board = Board(link.sync)
    try:
        code = follow(o, link, board)
    except KeyboardInterrupt:
        code = 0
    link.client.disconnect()
    print(json.dumps(board.summary()))
    return 1 if board.mismatches else code


if __name__ == "__main__":
    sys.exit(main())
