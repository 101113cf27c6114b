package pa

import (
	"math"
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// trace keeps the newest records of each thread until they are read. Its methods may be
// called from any goroutine.
type trace struct {
	room int64 // see program.Op

	reading sync.Mutex // held while stores are read: see feeds; taken before mu
	stores  []service.Trail

	mu       sync.Mutex
	byThread map[owner]*tail
	taken    []service.Record // in the order of their times; not read yet
	lost     uint64           // lost records not yet reported
}

// mostRoom bounds the records kept for a thread. mostTails bounds the threads for which
// the monitor keeps separate records; beyond that it takes over the records of all, as if
// the threads had ended.
const (
	mostRoom  = 1 << 16
	mostTails = 1 << 10
)

var _ service.Traced = (*trace)(nil)

func newTrace(room int64) *trace { return &trace{room: room, byThread: make(map[owner]*tail)} }

// tail holds the newest records that the monitor appended for a thread.
type tail struct {
	records []service.Record
	next    int // index of the oldest record when the tail is full
}

// append adds a record and returns the number of records that it overwrote.
func (l *tail) append(r service.Record, room int64) uint64 {
	if int64(len(l.records)) < room {
		l.records = append(l.records, r)
		return 0
	}
	l.records[l.next] = r
	l.next = (l.next + 1) % len(l.records)
	return 1
}

// inOrder returns the records, oldest first.
func (l *tail) inOrder() []service.Record { return append(l.records[l.next:], l.records[:l.next]...) }

// Kind implements service.Cell.
func (*trace) Kind() program.StoreKind { return program.StoreTraces }

// Room implements service.Traced.
func (t *trace) Room() int64 { return t.room }

// Join implements service.Cell.
func (t *trace) Join(s service.Store) {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.stores = append(t.stores, s.(service.Trail))
}

// Leave implements service.Cell.
func (t *trace) Leave(s service.Store) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.stores = slices.DeleteFunc(t.stores, func(other service.Trail) bool { return service.Store(other) == s })
	records, lost, err := s.(service.Trail).Take()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken, t.lost = append(t.taken, records...), t.lost+lost
	t.sort()
	t.forgetOld()
	return err
}

func (t *trace) sort() {
	slices.SortStableFunc(t.taken, func(a, b service.Record) int { return int(a.Time - b.Time) })
}

// add appends a record to those of a thread.
func (t *trace) add(o owner, r service.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.byThread[o]
	if l == nil {
		if len(t.byThread) == mostTails {
			t.takeTails()
			t.sort()
			t.forgetOld()
		}
		l = &tail{}
		t.byThread[o] = l
	}
	t.lost += l.append(r, t.room)
}

// read returns at most the given number of records, oldest first. It collects new records
// only if those taken earlier do not suffice.
func (t *trace) read(most int) (records []service.Record, lost uint64, err error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.has() < most {
		if err := t.gather(); err != nil {
			return nil, 0, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(most, len(t.taken))
	records, t.taken = t.taken[:n:n], t.taken[n:]
	lost, t.lost = t.lost, 0
	return records, lost, nil
}

// takeTails takes over the records that the monitor appended. The caller holds mu.
func (t *trace) takeTails() {
	for _, l := range t.byThread {
		t.taken = append(t.taken, l.inOrder()...)
	}
	clear(t.byThread)
}

// forgetOld bounds the number of unread records. The caller holds mu.
func (t *trace) forgetOld() {
	kept, lost := program.Newest(t.taken)
	t.taken, t.lost = kept, t.lost+lost
}

// has returns the number of records taken over and not read yet.
func (t *trace) has() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.taken)
}

// gather takes over all records that were appended so far. The caller holds reading.
func (t *trace) gather() error {
	var all []service.Record
	var lost uint64
	var err error
	for _, s := range t.stores {
		records, missing, failed := s.Take()
		all, lost = append(all, records...), lost+missing
		if err = failed; err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takeTails()
	t.taken, t.lost = append(t.taken, all...), t.lost+lost
	t.sort()
	return err
}

func (t *trace) reset() error {
	t.reading.Lock()
	defer t.reading.Unlock()
	var err error
	for _, s := range t.stores {
		if err = s.Reset(); err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byThread)
	t.taken, t.lost = nil, 0
	return err
}

// traceServices returns the table rows of traces.
func traceServices() []service.Service {
	traces, mark := service.TokensParam("trace_list", classTrace), service.IntegerParam("mark")
	return []service.Service{
		{
			Name: "pa_trace_create", Action: createTrace, Class: classTrace, Result: "token", Params: []service.Param{service.IntegerParam("room")},
			Doc: "make a trace and return its token; until its records are read it keeps at least this number of the newest records of each thread",
		},
		{
			Name: "pa_trace_delete", Action: remove, Class: classTrace, Object: classTrace, Params: []service.Param{traces},
			Doc: "delete traces",
		},
		{
			Name: "pa_trace_reset", Action: resetTrace, Class: classTrace, Object: classTrace, Params: []service.Param{traces},
			Doc: "delete all records of traces",
		},
		{
			Name: "pa_trace_add", Action: addToTrace, Compile: compileTrace, Class: classTrace, Object: classTrace, Local: true, Params: []service.Param{traces, mark},
			Doc: "append a record to traces: the time, the thread that the event belongs to, and a mark of 32 bits that distinguishes requests",
		},
		{
			Name: "pa_trace_add2", Action: addToTrace, Compile: compileTrace, Class: classTrace, Object: classTrace, Local: true,
			Params: []service.Param{traces, mark, service.IntegerParam("value")},
			Doc:    "append a record to traces as pa_trace_add does, with a value, such as a parameter of the event",
		},
		{
			Name: "pa_trace_last", Action: addLast, Compile: compileLast, Class: classTrace, Object: classTrace, Local: true, Params: []service.Param{traces, mark},
			Doc: "append a record to traces whose value is what the action before it in the list has measured: the nanoseconds of the interval that pa_timer_stop has closed, or the sum of the thread after pa_counter_add; append nothing if no interval was closed",
		},
		{
			Name: "pa_trace_group", Action: addGroup, Compile: compileGroup, Class: classTrace, Object: classTrace, Local: true,
			Params: []service.Param{traces, service.IntegerParam("group_mark"), mark},
			Doc:    "append records to traces of what the action before it in the list has measured for a group of threads, as pa_timer_over_counter2 describes: one with group_mark, whose value is the number of threads measured, and behind it one for each of these threads, with its value; append nothing if none was measured",
		},
		{
			Name: "pa_trace_stack", Action: addStack, Compile: compileStack, Class: classTrace, Object: classTrace, Local: true, Params: []service.Param{traces, mark},
			Doc: "append a record to traces whose value is the stack pointer, which is the same where a function is entered and where it returns. In a function of Go append two records: one with the negative mark, whose value is the address of the goroutine's descriptor, and one whose value is the distance of the stack pointer from the upper end of the goroutine's stack",
		},
		{
			Name: "pa_trace_read", Action: readTrace, Class: classTrace, Object: classTrace, Params: []service.Param{traces, service.IntegerParam("most")},
			Result: "struct { integer lost; integer num; struct { token process; token thread; floating time; integer mark; integer value; }* records; }",
			Doc:    "return records of traces in the order of their times, at most the given number (0: all), and remove them from the trace; also return the number of records lost for lack of room since the last call",
		},
	}
}

func createTrace(c *service.Call) ([]omis.Value, error) {
	room, ok := c.Args[0].Int64()
	if !ok || room < 1 || room > mostRoom {
		return nil, omis.Errorf(omis.ParameterError, "a trace keeps 1 to %d records of each thread", mostRoom)
	}
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTrace, newTrace(room)))}, nil
}

func resetTrace(c *service.Call) ([]omis.Value, error) { return nil, c.Object.(*trace).reset() }

// markOf and valueOf convert parameters of pa_trace_add and pa_trace_add2.
func markOf(v omis.Value) (int32, error) {
	n, ok := v.Int64()
	if !ok || n != int64(int32(n)) {
		return 0, omis.Errorf(omis.ParameterError, "the mark does not fit into a signed 32-bit integer")
	}
	return int32(n), nil
}

func valueOf(v omis.Value) (int64, error) {
	n, ok := v.Int64()
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "the value does not fit into a signed 64-bit integer")
	}
	return n, nil
}

// compileTrace compiles pa_trace_add or pa_trace_add2 to a step of a program.
func compileTrace(args []service.Argument) (op program.Op, err error) {
	if args[1].Load.IsLoaded() {
		return op, omis.Errorf(omis.ParameterError, "a mark must be constant, but an event parameter may change with each hit")
	}
	op.Do = program.OpTrace
	if op.Mark, err = markOf(args[1].Value); err != nil || len(args) == 2 {
		return op, err
	}
	if op.Load = args[2].Load; !op.Load.IsLoaded() {
		op.Value, err = valueOf(args[2].Value)
	}
	return op, err
}

func addToTrace(c *service.Call) ([]omis.Value, error) {
	var value int64
	if len(c.Args) > 2 {
		var err error
		if value, err = valueOf(c.Args[2]); err != nil {
			return nil, err
		}
	}
	return addRecord(c, value)
}

// addRecord appends a record to the object of an action.
func addRecord(c *service.Call, value int64) ([]omis.Value, error) {
	mark, err := markOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	addMarked(c, mark, value)
	return nil, nil
}

func addMarked(c *service.Call, mark int32, value int64) {
	r := service.Record{Record: program.Record{Mark: mark, Value: value}}
	r.Proc, r.Thread = origin(c.Event)
	if c.Event != nil {
		r.Time = c.Event.Time
	} else {
		r.Time = c.Scope.Now()
	}
	c.Object.(*trace).add(owner{r.Proc, r.Thread}, r)
}

func readTrace(c *service.Call) ([]omis.Value, error) {
	most, ok := c.Args[1].Int64()
	if !ok || most < 0 {
		return nil, omis.Errorf(omis.ParameterError, "the number of records to read must be 0 (all) or greater")
	}
	if most == 0 {
		most = math.MaxInt
	}
	records, lost, err := c.Object.(*trace).read(int(most))
	if err != nil {
		return nil, err
	}
	list := make([]omis.Value, 0, 5*len(records))
	for i := range records {
		r := &records[i]
		list = append(list, omis.TokenValue(r.Proc), omis.TokenValue(r.Thread),
			omis.Seconds(uint64(r.Time)), omis.Int(int64(r.Mark)), omis.Int(r.Value))
	}
	return []omis.Value{omis.Uint(lost), omis.Int(int64(len(records))), omis.List(list...)}, nil
}
