package main

import "github.com/anishathalye/porcupine"

// The model of a partition: a revision, and for each key a row (value and version) or none.
//
//   - A write that takes effect makes the next revision, and that revision is the version of every
//     key that it puts. All of its puts take effect together, or none, and only if every condition
//     holds at that moment.
//   - A refused write changes nothing, and what it was refused for was so at that moment.
//   - A read shows the rows of all of its keys at one moment, whose revision it says.
//   - A replay changes nothing and says what the first answer said.
//   - A write whose outcome is unknown either takes effect or finds that a condition does not hold.
//     That covers "never": nothing is read after the end of time.
//
// Nothing but the writes of a history may make revisions, so they have no gaps. This holds the
// model to one order nearly everywhere, which keeps the search short, and it finds effects that
// nobody asked for.

// keysMax bounds a state, which has to be comparable.
const keysMax = 16

type cell struct {
	value   string
	version int64
}

type state struct {
	revision int64
	cells    [keysMax]cell
}

// shared is what all operations of one partition know.
type shared struct {
	keys map[string]int
	// Revisions that acknowledged writes made: no other write made them.
	taken map[int64]bool
}

type input struct {
	record *record
	shared *shared
	// Of a replay: the write that was sent once more.
	first *record
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, in, _ interface{}) (bool, interface{}) {
		return in.(input).step(before.(state))
	},
	Hash: func(of interface{}) uint64 { return uint64(of.(state).revision) * 0x9E3779B97F4A7C15 },
}

func (in input) step(before state) (bool, interface{}) {
	one := in.record
	switch one.Op {
	case "read":
		return in.shows(before), before
	case "replay":
		return sameAnswer(in.first, one) && before.revision >= *one.Revision, before
	}
	switch one.Outcome {
	case "ok":
		holds := in.broken(before) == nil && before.revision+1 == *one.Revision
		for _, version := range one.Versions {
			holds = holds && version == *one.Revision
		}
		return holds && len(one.Versions) == len(one.Puts), in.after(before)
	case "refused":
		return in.refusedRightly(before), before
	case "failed": // for a reason that is no matter of the state
		return true, before
	case "unknown":
		if in.broken(before) != nil {
			return true, before
		}
		return !in.shared.taken[before.revision+1], in.after(before)
	}
	return false, before
}

func (in input) cell(of state, key string) cell { return of.cells[in.shared.keys[key]] }

func (in input) after(before state) state {
	after := before
	after.revision++
	for _, put := range in.record.Puts {
		after.cells[in.shared.keys[put.Key]] = cell{put.Value, after.revision}
	}
	return after
}

func (in input) shows(now state) bool {
	one := in.record
	if one.Revision != nil && *one.Revision != now.revision || len(one.Rows) != len(one.Keys) {
		return false
	}
	for at, key := range one.Keys {
		there := in.cell(now, key)
		if said := one.Rows[at]; said == nil {
			if there.version != 0 {
				return false
			}
		} else if (cell{said.Value, said.Version}) != there {
			return false
		}
	}
	return true
}

// broken returns the first condition that does not hold, in the order in which the contract looks:
// guards, then puts; nil when all hold.
func (in input) broken(now state) *refusal {
	for at, guard := range in.record.Guards {
		if version := in.cell(now, guard.Key).version; !guard.holds(version) {
			return &refusal{Reason: guard.reason(), Index: at, Guard: true, Current: &version}
		}
	}
	for at, put := range in.record.Puts {
		if version := in.cell(now, put.Key).version; !put.holds(version) {
			return &refusal{Reason: put.reason(), Index: at, Current: &version}
		}
	}
	return nil
}

func (in input) refusedRightly(now state) bool {
	said, due := in.record.Refusal, in.broken(now)
	if said == nil || due == nil {
		return false
	}
	return said.Reason == due.Reason && said.Index == due.Index && said.Guard == due.Guard &&
		(said.Current == nil || *said.Current == *due.Current)
}

func (one condition) holds(version int64) bool {
	switch one.Must {
	case "absent":
		return version == 0
	case "exists":
		return version != 0
	case "version":
		return version == one.Version
	}
	return true
}

func (one condition) reason() string {
	switch one.Must {
	case "absent":
		return "ALREADY_EXISTS"
	case "exists":
		return "NOT_FOUND"
	}
	return "VERSION_MISMATCH"
}

// sameAnswer says whether a replay says what the first answer said. Where the first answer never
// came, its revision is not known, and the replay would have been recorded as the write's own.
func sameAnswer(first, replay *record) bool {
	if first.Outcome != "ok" || replay.Outcome != "ok" || *first.Revision != *replay.Revision ||
		len(first.Versions) != len(replay.Versions) {
		return false
	}
	for at, version := range first.Versions {
		if version != replay.Versions[at] {
			return false
		}
	}
	return true
}
