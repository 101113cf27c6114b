package translate

import (
	"math/bits"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/node"
)

// Some metrics are components of what the information services of OMIS return: totals and
// levels that the kernel knows of a process or thread, whatever is observed.

// info selects the components that a metric is read from.
type info struct {
	process node.ProcFields   // 0 if there is none of processes
	thread  node.ThreadFields // 0 if there is none of threads
	factor  int64             // of integers; 0: 1
	node    int               // of the node: index in its group
}

// infoRows reads an information service, with width components of each object.
func infoRows(service string, width int, identify func(*row, omis.Token, omis.Value)) func(omis.Reply, int) ([]row, error) {
	return func(reply omis.Reply, i int) ([]row, error) {
		var rows []row
		for r, err := range results(reply, i) {
			if err != nil {
				return nil, err
			}
			if len(r.Values) != width {
				return nil, unexpected(service, r)
			}
			for _, object := range r.Objects {
				one := row{values: r.Values}
				identify(&one, object, r.Values[0])
				rows = append(rows, one)
			}
		}
		return rows, nil
	}
}

func ofNode(*row, omis.Token, omis.Value) {}

func ofProcess(r *row, object omis.Token, _ omis.Value) { r.process = object }

// ofThread identifies the row of a thread. The first component of its service is the thread's process.
func ofThread(r *row, object omis.Token, first omis.Value) {
	r.process, r.thread = first.Token(), object
}

// info adds up the components of a metric. It has no value if nothing is known of an object.
func (rd *reading) info(m Metric, i *Instance) Stats {
	rows, index := rd.procs, bits.OnesCount32(uint32(rd.procFields&(m.info.process-1)))
	if i.level == mir.Thread {
		rows, index = rd.threads, bits.OnesCount32(uint32(rd.threadFields&(m.info.thread-1)))
	}
	var sum uint64
	found := false
	for j := range rows {
		if r := &rows[j]; i.has(r) {
			v, ok := m.component(r.values[index])
			if !ok {
				return Stats{}
			}
			sum, found = sum+v, true
		}
	}
	if !found {
		return Stats{}
	}
	return single(sum)
}

// ofNode returns a component of the node.
func (rd *reading) ofNode(m Metric) Stats {
	if len(rd.node) == 0 {
		return Stats{}
	}
	v, ok := m.component(rd.node[0].values[m.info.node])
	if !ok {
		return Stats{}
	}
	return single(v)
}

// component converts a component to a value; ok is false for a negative one, which means that the
// machine does not have it.
func (m Metric) component(v omis.Value) (uint64, bool) {
	n, ok := v.Int64()
	switch {
	case ok && n < 0:
		return 0, false
	case m.millionths:
		f, known := v.Number()
		return uint64(max(f, 0)*float64(millisecond) + 0.5), known
	case m.unit() == millisecond:
		return v.Nanoseconds(), true
	}
	return uint64(n * max(m.info.factor, 1)), ok
}
