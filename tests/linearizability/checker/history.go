package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sort"

	"github.com/anishathalye/porcupine"
)

// record is one operation as a client saw it: one line of a history.
//
// A write is one record from the first time that it was sent to the last answer, however often it
// was sent again with its request id. A replay is a write that had been answered and was sent once
// more. Reads without an answer are not recorded.
type record struct {
	Op        string `json:"op"` // "read", "write" or "replay"
	Partition string `json:"partition"`
	Process   int    `json:"process"`
	// Nanoseconds of a clock that all processes share. Return is absent where the outcome stayed
	// unknown: the operation may take effect at any later time, or never.
	Call   int64  `json:"call"`
	Return *int64 `json:"return,omitempty"`
	// Reads: the keys, and the row of each, nil where there is none.
	Keys []string `json:"keys,omitempty"`
	Rows []*row   `json:"rows,omitempty"`
	// Writes.
	ID      string   `json:"id,omitempty"`
	Puts    []put    `json:"puts,omitempty"`
	Guards  []guard  `json:"guards,omitempty"`
	Outcome string   `json:"outcome,omitempty"` // "ok", "refused", "failed" or "unknown"
	Refusal *refusal `json:"refusal,omitempty"`
	// The revision of an answer. Reads: absent where the answer has none (nothing was found).
	Revision *int64 `json:"revision,omitempty"`
	// The version of each key that was put.
	Versions []int64 `json:"versions,omitempty"`
}

type row struct {
	Value   string `json:"value"`
	Version int64  `json:"version"`
}

// put states a value of a key, if the condition holds.
type put struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	condition
}

type guard struct {
	Key string `json:"key"`
	condition
}

// condition is "any", "absent", "exists" or "version" (with the version).
type condition struct {
	Must    string `json:"must"`
	Version int64  `json:"version,omitempty"`
}

// refusal says whose condition did not hold (the place in puts, or in guards), and of which version
// the key is.
type refusal struct {
	Reason  string `json:"reason"`
	Index   int    `json:"index"`
	Guard   bool   `json:"guard,omitempty"`
	Current *int64 `json:"current,omitempty"`
}

const never = math.MaxInt64

func readAll(paths []string) ([]*record, error) {
	if len(paths) == 0 {
		return nil, errors.New("name at least one file of JSON lines")
	}
	records := []*record{}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for number := 1; lines.Scan(); number++ {
			one := new(record)
			if err := json.Unmarshal(lines.Bytes(), one); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, number, err)
			}
			records = append(records, one)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return records, nil
}

type partition struct {
	name    string
	records []*record
}

func partitions(records []*record) []partition {
	byName := map[string][]*record{}
	for _, one := range records {
		byName[one.Partition] = append(byName[one.Partition], one)
	}
	found := []partition{}
	for name, its := range byName {
		found = append(found, partition{name, its})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].name < found[j].name })
	return found
}

// operations turns the records of one partition into what the model steps through.
func operations(records []*record) ([]porcupine.Operation, error) {
	shared := &shared{keys: map[string]int{}, taken: map[int64]bool{}}
	history := []porcupine.Operation{}
	for _, one := range records {
		for _, key := range keysOf(one) {
			if _, known := shared.keys[key]; !known {
				shared.keys[key] = len(shared.keys)
			}
		}
		if one.Op == "write" && one.Outcome == "ok" {
			shared.taken[*one.Revision] = true
		}
	}
	if len(shared.keys) > keysMax {
		return nil, fmt.Errorf("%d keys, and at most %d are checked together", len(shared.keys), keysMax)
	}
	first := map[string]*record{}
	for _, one := range records {
		if one.Op == "write" {
			if first[one.ID] != nil {
				return nil, fmt.Errorf("two writes have the request id %q", one.ID)
			}
			first[one.ID] = one
		}
	}
	for _, one := range records {
		operation := porcupine.Operation{Call: one.Call, Return: never}
		if one.Return != nil {
			operation.Return = *one.Return
		}
		in := input{record: one, shared: shared}
		if one.Op == "replay" {
			if in.first = first[one.ID]; in.first == nil {
				return nil, fmt.Errorf("a replay of the unknown request id %q", one.ID)
			}
		}
		if one.Op == "write" && (one.Outcome == "unknown") != (one.Return == nil) {
			return nil, fmt.Errorf("write %q: exactly the unknown outcomes have no return", one.ID)
		}
		operation.Input = in
		history = append(history, operation)
	}
	return history, nil
}

func keysOf(one *record) []string {
	keys := append([]string{}, one.Keys...)
	for _, put := range one.Puts {
		keys = append(keys, put.Key)
	}
	for _, guard := range one.Guards {
		keys = append(keys, guard.Key)
	}
	return keys
}
