package pa

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// counting is a machine whose meters show the values that a test sets.
type counting struct {
	shows  node.MeterReading
	open   int
	opened error // the answer to OpenMeter
	ended  bool  // the process has ended
}

// machine is a machine with meters.
type machine struct {
	program.Machine
	*counting
}

func (m machine) Capabilities() program.Capabilities {
	return program.Capabilities{Capabilities: node.Capabilities{Meters: m.counting}}
}

func (m machine) Close(context.Context) error { return nil }

func (m machine) Threads(p omis.ProcID) ([]int, error) { return m.counting.threads() }

func (c *counting) threads() ([]int, error) {
	if c.ended {
		return nil, omis.Errorf(omis.UnknownObject, "it has ended")
	}
	return nil, nil
}

func (c *counting) CheckMeter(string) error { return nil }

func (c *counting) OpenMeter(_ omis.ProcID, tid int, _ node.MeterEvent) (node.Meter, error) {
	if tid > 1 && c.opened != nil {
		return nil, c.opened
	}
	c.open++
	return c, nil
}

func (c *counting) Read() (node.MeterReading, error) { return c.shows, nil }

func (c *counting) Close() error {
	c.open--
	return nil
}

func (c *counting) thread(n int) service.Thread {
	return service.Thread{Token: omis.Token(fmt.Sprint("t_", n)), Proc: "p_1", Machine: machine{counting: c}, TID: n}
}

// row1 returns the first row of a meter: value, enabled and running.
func row1(t *testing.T, m *meter) string {
	t.Helper()
	vs, err := m.values()
	if err != nil {
		t.Fatal(err)
	}
	l := vs[1].List
	value, _ := l[2].Int64()
	return fmt.Sprint(value, time.Duration(l[3].Nanoseconds()), time.Duration(l[4].Nanoseconds()))
}

// TestMeterEstimates checks that a count is scaled if the kernel counted for a part of the time only,
// and that periods are added up.
func TestMeterEstimates(t *testing.T) {
	c := &counting{}
	m := newMeter("instructions")
	show := func(count uint64, enabled, running time.Duration, want string) {
		t.Helper()
		c.shows = node.MeterReading{Count: count, Enabled: enabled, Running: running}
		if got := row1(t, m); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if err := m.start([]service.Thread{c.thread(1)}); err != nil {
		t.Fatal(err)
	}
	show(0, 0, 0, "0 0s 0s") // it has not run
	show(0, 2*time.Millisecond, 0, "-1 2ms 0s")
	show(100, 4*time.Millisecond, time.Millisecond, "400 4ms 1ms")
	if err := m.Close(); err != nil || c.open != 0 {
		t.Fatalf("%d are open: %v", c.open, err)
	}
	show(999, 9*time.Millisecond, 9*time.Millisecond, "400 4ms 1ms")
	if err := m.start([]service.Thread{c.thread(1)}); err != nil {
		t.Fatal(err)
	}
	show(50, time.Millisecond, time.Millisecond, "450 5ms 2ms")
	if err := m.reset(); err != nil {
		t.Fatal(err)
	}
	show(51, 3*time.Millisecond, 2*time.Millisecond, "2 2ms 1ms")
}

// TestMeterOpensAllOrNone checks which counters are open after an error, and after a process has ended.
func TestMeterOpensAllOrNone(t *testing.T) {
	c := &counting{opened: omis.Errorf(omis.NoPermission, "no")}
	m := newMeter("instructions")
	if err := m.start([]service.Thread{c.thread(1), c.thread(2)}); !is(err, omis.NoPermission) || c.open != 0 {
		t.Errorf("%d are open: %v", c.open, err)
	}
	c.opened = omis.Errorf(omis.UnknownObject, "thread 2 has ended")
	if err := m.start([]service.Thread{c.thread(1), c.thread(2)}); err != nil || c.open != 1 {
		t.Errorf("%d are open: %v", c.open, err)
	}
	c.ended = true
	if err := m.start(nil); err != nil || c.open != 0 {
		t.Errorf("%d are open after the end of the process: %v", c.open, err)
	}
}
