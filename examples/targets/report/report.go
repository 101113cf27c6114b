// Package report parses the reports of the target mmul, so that tests can compare measured
// counts with the true ones. Every package may import it; it imports no other package of this
// module.
package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Report is one report of mmul. Its numbers are exact in the states waiting and done, and may
// be slightly outdated in others.
type Report struct {
	Number   int
	State    string // waiting, working, stopping or done
	Threads  []Thread
	Total    map[string]int64 // by function
	Checksum string           // the same for the same threads, size and rounds
	OK       bool             // every product was right
}

// Thread has the counts of one thread.
type Thread struct {
	Name  string
	TID   int
	Calls map[string]int64 // by function
}

// ReadFile reads the report that mmul wrote with --counts.
func ReadFile(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Last(f)
}

// Last reads mmul's output and returns its last complete report.
func Last(r io.Reader) (*Report, error) {
	var last, current *Report
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			if last == nil {
				return nil, fmt.Errorf("no complete report of mmul: %w", orEOF(lines.Err()))
			}
			return last, nil
		}
		f := strings.Fields(lines.Text())
		switch {
		case len(f) == 3 && f[0] == "report":
			current = &Report{State: f[2], Total: map[string]int64{}}
			current.Number, _ = strconv.Atoi(f[1])
		case current == nil:
		case len(f) == 1 && f[0] == "end":
			last, current = current, nil
		default:
			if err := current.line(f); err != nil {
				return nil, err
			}
		}
	}
}

func (r *Report) line(f []string) error {
	switch {
	case len(f) == 5 && f[0] == "count":
		tid, err1 := strconv.Atoi(f[2])
		n, err2 := strconv.ParseInt(f[4], 10, 64)
		if err1 == nil && err2 == nil {
			r.thread(f[1], tid).Calls[f[3]] = n
			return nil
		}
	case len(f) == 3 && f[0] == "total":
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err == nil {
			r.Total[f[1]] = n
			return nil
		}
	case len(f) == 3 && f[0] == "checksum":
		r.Checksum, r.OK = f[1], f[2] == "ok"
		return nil
	}
	return fmt.Errorf("%q is not a line of a report of mmul", strings.Join(f, " "))
}

func (r *Report) thread(name string, tid int) *Thread {
	for i := range r.Threads {
		if r.Threads[i].TID == tid {
			return &r.Threads[i]
		}
	}
	r.Threads = append(r.Threads, Thread{Name: name, TID: tid, Calls: map[string]int64{}})
	return &r.Threads[len(r.Threads)-1]
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
