package probes_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/probes/deliver"
)

// of returns what the documents on a stream say: what happened, in which thread, and the values, with "-" for an
// entity without a value.
func of(documents []string) string {
	var all []string
	for _, d := range documents {
		line := ""
		for _, m := range said.FindAllStringSubmatch(d, -1) {
			line += " " + strings.Join(m[1:], "")
		}
		for _, m := range valued.FindAllStringSubmatch(d, -1) {
			if m[1] != "" {
				m[1] += ":"
			}
			line += " " + m[1] + strings.Replace(m[2], "", "-", 1-min(len(m[2]), 1))
		}
		all = append(all, line[1:])
	}
	return strings.Join(all, ", ")
}

var (
	said   = regexp.MustCompile(`gateway:event="(\w+)"|gateway:thread="(\w+)"|gateway:goroutine="(\w+)"`)
	valued = regexp.MustCompile(`<measurement(?: threadId="(\w+)")?(?: value="(\w+)")?(?: xmlns[^>]*)?/>`)
)

// TestRecordsOfNamedThreads checks that only executions in named threads are recorded, and that other threads have no
// values in their records.
func TestRecordsOfNamedThreads(t *testing.T) {
	for request, want := range map[string]string{
		`<event/><thread id="t_2"/>`:                                             "enter t_2 -, leave t_2 -",
		`<metric name="COUNT"/><event/><thread id="t_1"/><thread id="t_2"/>`:     "enter t_1 1 -, leave t_1 1 -, enter t_2 - 1, leave t_2 - 1, enter t_1 2 -, leave t_1 2 -",
		`<metric name="COUNT"/><thread id="t_1"/><thread id="t_2"/>`:             "1 -, - 1, 2 -",
		`<metric name="COUNT"/><event/><thread id="t_2"/>`:                       "enter t_2 1, leave t_2 1",
		`<metric name="SYSCALL_COUNT"/><event/><thread id="t_2"/>`:               "enter t_1 1, leave t_1 -, enter t_2 3, leave t_2 -, enter t_1 5, leave t_1 -",
		`<metric name="COUNT"/><metric name="SYSCALL_COUNT"/><thread id="*"/>`:   "1 0 - 1, - 2 1 3, 2 4 - 5",
		`<metric name="SYSCALL_COUNT"/><thread id="t_1"/><thread id="t_2"/>`:     "0 1, 2 3, 4 5",
		`<metric name="SYSCALL_COUNT"/><thread id="t_2"/><thread id="?"/>`:       "1 t_1:0, 3, 5 t_1:4",
		`<metric name="COUNT"/><metric name="SYSCALL_COUNT"/><thread id="t_2"/>`: "- 1, 1 3, - 5",
	} {
		withStream(t, eachIt(request), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
			for i, tid := range []int{1, 2, 1} {
				time.Sleep(time.Microsecond)
				for range min(i, 1) {
					p.SysCall(1, "getppid", omis.Int(0))
					p.SysCall(1, "getppid", omis.Int(0))
					p.SysCall(2, "getppid", omis.Int(0))
				}
				p.SysCall(2, "getppid", omis.Int(0))
				execute(p, tid)
			}
			if got := of(documents(t, events)); got != want {
				t.Errorf("%s: got\n%s, want\n%s", request, got, want)
			}
		})
	}
}

// TestRecordsOfLevels checks that each record has the level at its instant: with both ends two for each execution.
func TestRecordsOfLevels(t *testing.T) {
	for request, want := range map[string]string{
		`<codeRegion from="f.1a2b" to="f.1a2b"/><metric name="THREAD_COUNT"/>`:                                                     "2, 3, 3, 4",
		`<codeRegion from="f.1a2b"/><metric name="THREAD_COUNT"/>`:                                                                 "2, 3",
		`<codeRegion to="f.1a2b"/><metric name="THREAD_COUNT"/>`:                                                                   "3, 4",
		`<codeRegion from="f.1a2b" to="f.1a2b"/><metric name="COUNT"/><metric name="THREAD_COUNT"/>`:                               "1 2, 1 3, 2 3, 2 4",
		`<codeRegion from="f.1a2b" to="f.1a2b"/><metric name="COUNT"/><metric name="SYSCALL_COUNT"/><metric name="THREAD_COUNT"/>`: "1 - 2, 1 1 3, 2 - 3, 2 1 4",
		`<codeRegion from="f.1a2b" to="f.1a2b"/><metric name="THREAD_COUNT"/><event/>`:                                             "enter t_1 2, leave t_1 3, enter t_1 3, leave t_1 4",
		`<codeRegion from="f.1a2b"/><metric name="THREAD_COUNT"/><event/>`:                                                         "enter t_1 2, leave t_1 -, enter t_1 3, leave t_1 -",
		`<codeRegion to="f.1a2b"/><metric name="THREAD_COUNT"/><event/>`:                                                           "leave t_1 3, leave t_1 4",
		`<codeRegion to="f.1a2b"/><metric name="COUNT"/><event/>`:                                                                  "leave t_1 1, leave t_1 2",
	} {
		whole := strings.Replace(eachIt(request+`<process id="p_1"/>`), `<codeRegion from="f.1a2b"/>`, "", 1)
		withStream(t, whole, func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
			for i := range 2 {
				p.Reach(1, entry, 0x7ffc1000)
				p.SysCall(1, "getppid", omis.Int(0))
				p.Spawn(1, 10+i)
				p.Reach(1, leave, 0x7ffc1000)
			}
			if got := of(documents(t, events)); got != want {
				t.Errorf("%s: got\n%s, want\n%s", request, got, want)
			}
		})
	}
}

// TestLostRecordsOfGroup checks that an execution shows no values of a group if the target has overwritten some of its
// records, and that the loss is reported.
func TestLostRecordsOfGroup(t *testing.T) {
	withStream(t, eachIt(`<metric name="SYSCALL_COUNT"/><thread id="t_1"/><thread id="t_2"/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		const executed, room, records = 3000, 1 << 13, 4 // the number of values, two of them, and the end
		for range executed {
			p.SysCall(2, "getppid", omis.Int(0))
			execute(p, 1)
		}
		got := documents(t, events)
		if want := room / records; len(got) != want {
			t.Fatalf("%d executions are delivered, want %d", len(got), want)
		}
		lost := fmt.Sprintf(`gateway:lost="%d"`, records*executed-room)
		first, last := fmt.Sprint("0 ", executed-room/records+1), fmt.Sprint("0 ", executed)
		if of(got[:1]) != first || !strings.Contains(got[0], lost) || of(got[len(got)-1:]) != last {
			t.Errorf("delivered %s to %s, want the values %s, %s, and the values %s", got[0], got[len(got)-1], first, lost, last)
		}
	})
}

// TestRecordsOfGoroutines checks that records of functions in Go pair by the goroutine and the place on its stack,
// whichever threads execute it and wherever its stack is.
func TestRecordsOfGoroutines(t *testing.T) {
	withStream(t, eachIt(`<event/>`), func(t *testing.T, h *harness, p *fake.Process, events <-chan deliver.Event) {
		reach := func(tid int, addr, goroutine, end, depth uint64) {
			time.Sleep(time.Microsecond)
			<-p.Hit(node.EventReachedAddr, node.Hit{
				TID: tid, Addr: addr, SP: end - depth, Held: node.HeldByPtrace,
				Goroutine: node.Goroutine{Addr: goroutine, StackEnd: end},
			})
		}
		reach(1, entry, 0xa0, 0xc0000000, 80)
		reach(1, entry, 0xb0, 0xc8000000, 80)
		reach(2, entry, 0xa0, 0xd0000000, 160) // its stack has been moved
		reach(2, leave, 0xa0, 0xd0000000, 160)
		reach(1, leave, 0xa0, 0xd0000000, 80)
		reach(2, leave, 0xb0, 0xc8000000, 80)
		reach(1, entry, 0xb0, 0xc8000000, 80)
		reach(1, leave, 0xb0, 0xc8000000, 160)
		reach(2, entry, 0xb0, 0xc8000000, 48) // another goroutine with the same descriptor
		const want = "enter t_1 0xa0 -, enter t_1 0xb0 -, enter t_2 0xa0 -, leave t_2 0xa0 -, leave t_1 0xa0 -, leave t_2 0xb0 -, " +
			"enter t_1 0xb0 -, unmatched t_1 0xb0 -, abandon t_2 0xb0 -, enter t_2 0xb0 -"
		if got := of(documents(t, events)); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	})
}
