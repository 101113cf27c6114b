package pa

import (
	"errors"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// The monitor reads a clock of program.Clock.IsSteady while it holds a thread, of that thread or of
// any other one.

// steadyCount returns how the monitor reads such a clock: which components of thread_get_info have the number, and
// the number in them.
func steadyCount(clock program.Clock) (f node.ThreadFields, of func(*node.Usage) int64) {
	const block = 512 // bytes, of FileInput and FileOutput
	switch clock {
	case program.ClockMinorFaults:
		return node.ThreadMinorPageFaults, func(u *node.Usage) int64 { return u.MinorFaults }
	case program.ClockMajorFaults:
		return node.ThreadMajorPageFaults, func(u *node.Usage) int64 { return u.MajorFaults }
	case program.ClockFaults:
		return node.ThreadMinorPageFaults | node.ThreadMajorPageFaults, func(u *node.Usage) int64 { return u.MinorFaults + u.MajorFaults }
	case program.ClockRead:
		return node.ThreadReadBytes, func(u *node.Usage) int64 { return u.ReadBytes }
	case program.ClockWritten:
		return node.ThreadWrittenBytes, func(u *node.Usage) int64 { return u.WrittenBytes }
	case program.ClockDiskRead:
		return node.ThreadFileInput, func(u *node.Usage) int64 { return block * u.FileInput }
	}
	return node.ThreadFileOutput, func(u *node.Usage) int64 { return block * u.FileOutput }
}

// canCount reports why the monitor cannot read the clock of a timer.
func (t *timer) canCount() error {
	if t.clock == program.ClockMeter || t.clock.IsSteady() {
		return nil
	}
	return omis.Errorf(omis.UnsupportedService, "%s", program.NotHeld)
}

// counted returns what the clock shows for a thread, and the owner of the thread's row.
func (t *timer) counted(e *service.Occurrence, thread omis.Token) (o owner, n int64, err error) {
	if err := t.canCount(); err != nil {
		return o, 0, err
	}
	fields, number := steadyCount(t.clock)
	if t.metering != nil {
		fields = 0 // only the process is of interest
	}
	proc, info, err := e.ThreadInfo(thread, fields)
	o = owner{proc, thread}
	if err != nil {
		return o, 0, err
	}
	if t.metering != nil {
		n, err = t.metering.reads(e, o)
		return o, n, err
	}
	return o, number(&info.Usage), nil
}

// counts returns what the clock of the kernel shows for the live threads of the group.
func (g *group) counts(t *timer, e *service.Occurrence) (map[owner]int64, error) {
	values := make(map[owner]int64)
	for _, thread := range g.threads(e) {
		switch o, n, err := t.counted(e, thread); {
		case err == nil:
			values[o] = n
		case !hasEnded(err):
			return nil, err
		}
	}
	return values, nil
}

// hasEnded reports whether an error says that a thread, or its process, has ended.
func hasEnded(err error) bool {
	var e *omis.Error
	return errors.As(err, &e) && e.Status == omis.UnknownObject
}

// threads lists the threads of the group. An empty group has those of the event's process.
func (g *group) threads(e *service.Occurrence) (list []omis.Token) {
	if len(g.among) == 0 {
		return e.Threads(e.Proc)
	}
	for token := range g.among {
		if token.Class() == omis.ClassProcess {
			list = append(list, e.Threads(token)...)
		} else {
			list = append(list, token)
		}
	}
	return list
}

// createTimer5 makes a timer for a group of threads whose clock is a number of the kernel.
func createTimer5(c *service.Call) ([]omis.Value, error) {
	t, err := sampledTimer(c)
	if err != nil {
		return nil, err
	}
	if err := t.configure(c.Args[1], c.Args[2]); err != nil {
		return nil, err
	}
	if err := t.canCount(); err != nil {
		return nil, err
	}
	t.group = groupOf(c.Args[3])
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}
