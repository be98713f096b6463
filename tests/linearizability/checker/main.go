// Command checker says whether recorded histories of a server are linearizable.
//
// It reads histories as JSON lines (see history.go) from the files that it is given, and checks
// each partition as one object of many registers, for batches and guards tie keys together. It
// prints one line of JSON. Exit codes: 0 linearizable; 1 not; 2 the input is no history, or the
// time ran out before an answer was found.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// verdict is what is printed.
type verdict struct {
	Linearizable bool      `json:"linearizable"`
	Partitions   int       `json:"partitions"`
	Operations   int       `json:"operations"`
	OpenEnded    int       `json:"open_ended"`
	Seconds      float64   `json:"seconds"`
	Failures     []failure `json:"failures"`
}

// failure is a partition that has no linearization.
type failure struct {
	Partition string `json:"partition"`
	// How many operations the longest linearization that was found has.
	Explained int `json:"explained"`
	// Operations that could not follow it although they had returned by then, the first few.
	Unexplained []string `json:"unexplained"`
}

const unexplainedMax = 8

func main() {
	timeout := flag.Duration("timeout", 5*time.Minute, "give up on a partition after this long")
	flag.Parse()
	records, err := readAll(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		os.Exit(2)
	}
	started := time.Now()
	found := verdict{Linearizable: true, Failures: []failure{}}
	for _, part := range partitions(records) {
		history, err := operations(part.records)
		if err != nil {
			fmt.Fprintln(os.Stderr, "checker:", part.name+":", err)
			os.Exit(2)
		}
		found.Partitions++
		found.Operations += len(history)
		for _, one := range history {
			if one.Return == never {
				found.OpenEnded++
			}
		}
		result, info := porcupine.CheckOperationsVerbose(model, history, *timeout)
		if result == porcupine.Unknown {
			fmt.Fprintln(os.Stderr, "checker:", part.name+": no answer within", *timeout)
			os.Exit(2)
		}
		if result == porcupine.Illegal {
			found.Linearizable = false
			found.Failures = append(found.Failures, explain(part.name, history, info))
		}
	}
	found.Seconds = time.Since(started).Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		os.Exit(2)
	}
	if !found.Linearizable {
		os.Exit(1)
	}
}

// explain names what the longest linearization leaves out, by the time of return.
func explain(name string, history []porcupine.Operation, info porcupine.LinearizationInfo) failure {
	var longest []porcupine.Operation
	for _, one := range info.PartialLinearizationsOperations()[0] {
		if len(one) > len(longest) {
			longest = one
		}
	}
	done := map[*record]bool{}
	for _, one := range longest {
		done[one.Input.(input).record] = true
	}
	left := []porcupine.Operation{}
	for _, one := range history {
		if !done[one.Input.(input).record] {
			left = append(left, one)
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].Return < left[j].Return })
	found := failure{Partition: name, Explained: len(longest), Unexplained: []string{}}
	for _, one := range left {
		if len(found.Unexplained) == unexplainedMax || one.Return == never {
			break
		}
		text, err := json.Marshal(one.Input.(input).record)
		if err != nil {
			panic(err)
		}
		found.Unexplained = append(found.Unexplained, string(text))
	}
	return found
}
