package pa

import (
	"errors"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// meter counts an event of the machine in threads (node.Meters). It has a row for each thread
// that it was started for; threads that these create later are counted in the row of their
// creator. Its methods may be called from any goroutine.
type meter struct {
	event string

	mu       sync.Mutex
	rows     []*metered // in the order in which counting began
	byThread map[omis.Token]*metered
}

// metered is what was counted in a thread.
type metered struct {
	service.Thread
	count            float64 // in earlier periods
	enabled, running time.Duration
	open             node.Meter        // nil if nothing is counted at present
	begun            node.MeterReading // where the present period began
}

func newMeter(event string) *meter {
	return &meter{event: event, byThread: make(map[omis.Token]*metered)}
}

// start counts in threads from now on. If it fails, no more threads are counted than before.
func (m *meter) start(threads []service.Thread) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.settle(); err != nil {
		return err
	}
	var begun []*metered
	for _, t := range threads {
		r := m.row(t)
		if r.open != nil {
			continue
		}
		if err := r.begin(m.event); err != nil {
			if is(err, omis.UnknownObject) { // it has just ended
				continue
			}
			for _, b := range begun {
				err = errors.Join(err, b.end())
			}
			return err
		}
		begun = append(begun, r)
	}
	return nil
}

// settle stops counting in processes that have ended, whose counts do not change any more.
func (m *meter) settle() error {
	var errs []error
	ended := make(map[omis.Token]bool)
	for _, r := range m.rows {
		if r.open == nil {
			continue
		}
		over, known := ended[r.Proc]
		if !known {
			_, err := r.Machine.Threads(r.ID)
			over = is(err, omis.UnknownObject)
			ended[r.Proc] = over
		}
		if over {
			errs = append(errs, r.end())
		}
	}
	return errors.Join(errs...)
}

// is reports whether an error has a status.
func is(err error, status omis.Status) bool {
	var e *omis.Error
	return errors.As(err, &e) && e.Status == status
}

// row returns the row of a thread.
func (m *meter) row(t service.Thread) *metered {
	r := m.byThread[t.Token]
	if r == nil {
		r = &metered{Thread: t}
		m.byThread[t.Token], m.rows = r, append(m.rows, r)
	}
	return r
}

// Close stops counting. The values remain.
func (m *meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.rows {
		if r.open != nil {
			errs = append(errs, r.end())
		}
	}
	return errors.Join(errs...)
}

// reset begins again at 0.
func (m *meter) reset() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		r.count, r.enabled, r.running = 0, 0, 0
		if r.open != nil {
			begun, failed := r.open.Read()
			r.begun, err = begun, errors.Join(err, failed)
		}
	}
	return err
}

// values returns the rows.
func (m *meter) values() ([]omis.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]omis.Value, 0, 5*len(m.rows))
	for _, r := range m.rows {
		now, err := r.now()
		if err != nil {
			return nil, err
		}
		list = append(list, omis.TokenValue(r.Proc), omis.TokenValue(r.Token), omis.Int(now.value()),
			omis.Seconds(uint64(now.enabled)), omis.Seconds(uint64(now.running)))
	}
	return []omis.Value{omis.Int(int64(len(m.rows))), omis.List(list...)}, nil
}

func (r *metered) begin(event string) (err error) {
	meters := r.Machine.Capabilities().Meters
	if meters == nil {
		return omis.Errorf(omis.UnsupportedService, "%s cannot count events of the processor and of the kernel", r.Machine.Name())
	}
	r.begun = node.MeterReading{}
	r.open, err = meters.OpenMeter(r.ID, r.TID, node.MeterEvent{Name: event})
	return err
}

// end ends a period.
func (r *metered) end() error {
	now, err := r.now()
	err = errors.Join(err, r.open.Close())
	*r = now
	r.open = nil
	return err
}

// now returns the row with the present period added to the earlier ones.
func (r *metered) now() (metered, error) {
	sum := *r
	if r.open == nil {
		return sum, nil
	}
	read, err := r.open.Read()
	if err != nil {
		return sum, err
	}
	enabled, running := read.Enabled-r.begun.Enabled, read.Running-r.begun.Running
	sum.enabled, sum.running = r.enabled+enabled, r.running+running
	if running > 0 {
		sum.count += float64(read.Count-r.begun.Count) * (float64(enabled) / float64(running))
	}
	return sum, nil
}

// value returns the count, estimated for the time in which nothing was counted; -1 if nothing was
// counted at all although the thread ran.
func (r *metered) value() int64 {
	if r.enabled > 0 && r.running == 0 {
		return -1
	}
	return int64(r.count + 0.5)
}

// meterServices returns the table rows of meters.
func meterServices() []service.Service {
	meters := service.TokensParam("meter_list", classMeter)
	return []service.Service{
		{
			Name: "pa_meter_create", Action: createMeter, Class: classMeter, Result: "token", Params: []service.Param{service.StringParam("event")},
			Doc: "make a meter and return its token. It counts an event of the processor or of the kernel, by the name that the command perf uses, such as instructions, cache-misses or cpu-migrations; events of the processor in the program alone, not in the kernel",
		},
		{
			Name: "pa_meter_delete", Action: remove, Class: classMeter, Object: classMeter, Params: []service.Param{meters},
			Doc: "delete meters",
		},
		{
			Name: "pa_meter_start", Action: startMeter, Class: classMeter, Object: classMeter,
			Params: []service.Param{meters, service.TokensParam("thread_list", omis.ClassThread)},
			Doc:    "count in threads, too, from now on. A thread that one of them creates later is counted with it",
		},
		{
			Name: "pa_meter_stop", Action: stopMeter, Class: classMeter, Object: classMeter, Params: []service.Param{meters},
			Doc: "stop to count in all threads; the values remain",
		},
		{
			Name: "pa_meter_reset", Action: resetMeter, Class: classMeter, Object: classMeter, Params: []service.Param{meters},
			Doc: "begin again at 0",
		},
		{
			Name: "pa_meter_read", Action: readMeter, Class: classMeter, Kind: service.Information, Object: classMeter,
			Params: []service.Param{meters}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer value; floating enabled; floating running; }* threads; }",
			Doc:    "return the rows of meters. If running, the CPU time in seconds during which the event was counted, is less than enabled, then more events were to be counted than the processor has counters: the kernel took turns, and the value is an estimate for the whole time, the count multiplied by enabled/running; it is -1 if running is 0",
		},
	}
}

func createMeter(c *service.Call) ([]omis.Value, error) {
	return []omis.Value{omis.TokenValue(c.Scope.Add(classMeter, newMeter(c.Args[0].Str)))}, nil
}

func startMeter(c *service.Call) ([]omis.Value, error) {
	threads, err := c.Scope.Threads(c.Args[1].List)
	if err != nil {
		return nil, err
	}
	return nil, c.Object.(*meter).start(threads)
}

func stopMeter(c *service.Call) ([]omis.Value, error) { return nil, c.Object.(*meter).Close() }

func resetMeter(c *service.Call) ([]omis.Value, error) { return nil, c.Object.(*meter).reset() }

func readMeter(c *service.Call) ([]omis.Value, error) { return c.Object.(*meter).values() }
