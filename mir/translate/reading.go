package translate

import (
	"math/bits"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// reading is the reply to Plan.Read, as rows of processes and threads.
type reading struct {
	counts  []row            // COUNT
	ends    []row            // of a region from one unit to another: how often it ended
	crosses bool             // there are ends
	timers  []row            // WC_TIME
	cpu     []row            // CPU_TIME of a region
	events  map[string][]row // by the name of a metric that is measured at events
	gains   map[gained][]row // of metrics that are measured as what they gain on a region
	procs   []row            // processes, with the components of procFields
	threads []row            // live threads, with the components of threadFields

	node []row // the node

	procFields   node.ProcFields
	threadFields node.ThreadFields
}

// gained identifies a timer on a region: a metric, and the threads for which it is measured.
type gained struct {
	name string
	view view
}

type row struct {
	process, thread omis.Token
	stats           Stats
	values          []omis.Value // components of information services
}

// reading parses the actions of a reply in the order of Read.
func (p *Plan) reading(reply omis.Reply, h Handles) (rd reading, err error) {
	if err := replyError(reply); err != nil {
		return rd, err
	}
	next := 1
	take := func(into *[]row, read func(omis.Reply, int) ([]row, error)) {
		if err == nil {
			*into, err = read(reply, next)
			next++
		}
	}
	if h.Counter != "" {
		take(&rd.counts, counterRows)
	}
	if h.Ends != "" {
		take(&rd.ends, counterRows)
		rd.crosses = true
	}
	timed := func(into *[]row, exact bool) {
		if exact {
			take(into, exactRows)
		} else {
			take(into, timerRows)
		}
		if p.OneIn > 0 {
			var all []row
			take(&all, sampleRows)
			*into = withSamples(*into, all)
		}
		if len(p.Percent) > 0 {
			var spread []row
			take(&spread, spreadRows)
			*into = withSpread(*into, spread)
		}
	}
	if h.Timer != "" {
		timed(&rd.timers, p.exact())
	}
	if h.CPUTimer != "" {
		timed(&rd.cpu, p.exact())
	}
	rd.events = make(map[string][]row)
	for _, m := range p.eventMetrics() {
		if p.Gains.has(m) {
			continue
		}
		var rows []row
		switch m.source {
		case betweenEvents:
			take(&rows, sumRows)
			if spreads(p, m) {
				var spread []row
				take(&spread, spreadRows)
				rows = withSpread(rows, spread)
			}
		case fromMeter:
			take(&rows, meterRows)
		default:
			take(&rows, counterRows)
		}
		rd.events[m.Name] = rows
	}
	rd.gains = make(map[gained][]row)
	for _, v := range p.Gains.views {
		for _, m := range p.Gains.metrics {
			var rows []row
			timed(&rows, true)
			rd.gains[gained{m.Name, v}] = rows
		}
	}
	if rd.procFields = p.procFields(); rd.procFields != 0 {
		take(&rd.procs, infoRows("proc_get_info", bits.OnesCount32(uint32(rd.procFields)), ofProcess))
	}
	if rd.threadFields = p.threadFields(); rd.threadFields != 0 {
		take(&rd.threads, infoRows("thread_get_info", bits.OnesCount32(uint32(rd.threadFields)), ofThread))
	}
	if p.uses(fromNode) {
		take(&rd.node, infoRows("node_get_info", countOfNode, ofNode))
	}
	return rd, err
}

// counterRows reads pa_counter_read: the number of rows, and a list of process, thread and
// value of each.
func counterRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_counter_read", 3, func(vs []omis.Value) Stats {
		n, _ := vs[0].Int64()
		return single(uint64(max(n, 0)))
	})
}

// timerRows reads pa_timer_read: process and thread, followed by count, last, sum, sumsq, min,
// max and unfinished, in seconds.
func timerRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_read", 9, func(vs []omis.Value) (s Stats) {
		if s.N, _ = vs[0].Int64(); s.N <= 0 {
			return Stats{}
		}
		s.Last, s.Min, s.Max = vs[1].Nanoseconds(), vs[4].Nanoseconds(), vs[5].Nanoseconds()
		s.Sum.Lo = vs[2].Nanoseconds()
		return s
	})
}

// exactRows reads pa_timer_exact: process and thread, followed by count, last, sum, sumsq, min,
// max and unfinished, in whole nanoseconds; each sum is a pair of integers.
func exactRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_exact", 11, func(vs []omis.Value) (s Stats) {
		if s.N, _ = vs[0].Int64(); s.N <= 0 {
			return Stats{}
		}
		s.Last, _ = vs[1].Uint64()
		s.Min, _ = vs[6].Uint64()
		s.Max, _ = vs[7].Uint64()
		s.Sum, s.Squares = wide(vs[2], vs[3]), wide(vs[4], vs[5])
		return s
	})
}

// wide returns the integer that two values hold.
func wide(high, low omis.Value) (u program.Uint128) {
	u.Hi, _ = high.Uint64()
	u.Lo, _ = low.Uint64()
	return u
}

// flat reads a list of structs, one after the other (OMIS 7.4), that start with a process and
// a thread.
func flat(reply omis.Reply, i int, service string, width int, stats func([]omis.Value) Stats) ([]row, error) {
	var rows []row
	for r, err := range results(reply, i) {
		if err != nil {
			return nil, err
		}
		if len(r.Values) != 2 || len(r.Values[1].List)%width != 0 {
			return nil, unexpected(service, r)
		}
		rows = slices.Grow(rows, len(r.Values[1].List)/width)
		for l := r.Values[1].List; len(l) > 0; l = l[width:] {
			rows = append(rows, row{process: l[0].Token(), thread: l[1].Token(), stats: stats(l[2:width])})
		}
	}
	return rows, nil
}

// withMore adds the results of a second service to the rows of the same threads. Threads that
// began after the first service was executed have rows only in more.
func withMore(rows, more []row, add func(*Stats, Stats)) []row {
	type owner struct{ process, thread omis.Token }
	at := make(map[owner]int, len(rows))
	for i := range rows {
		at[owner{rows[i].process, rows[i].thread}] = i
	}
	for _, r := range more {
		if i, known := at[owner{r.process, r.thread}]; known {
			add(&rows[i].stats, r.stats)
		} else {
			rows = append(rows, r)
		}
	}
	return rows
}

// of returns the value of a metric for an instance of an entity.
func (rd *reading) of(m Metric, e *entity, i *Instance) Stats {
	if rows, ok := rd.gains[gained{m.Name, e.view()}]; ok {
		return rd.paired(merged(rows, i), i)
	}
	switch m.source {
	case fromCounter:
		return counted(total(rd.counts, i, single(0)).Last)
	case fromTimer:
		return rd.paired(merged(rd.timers, i), i)
	case fromCPUTimer:
		return rd.paired(merged(rd.cpu, i), i)
	case fromMeter:
		return ofMeter(rd.events[m.Name], i)
	case fromEvents, betweenEvents:
		return total(rd.events[m.Name], i, single(0))
	case fromThreads:
		return rd.threadCount(i)
	}
	if m.source == fromNode {
		return rd.ofNode(m)
	}
	return rd.info(m, i)
}

// total adds up the values of rows. It returns none if there are no rows.
func total(rows []row, i *Instance, none Stats) Stats {
	var sum uint64
	var spread program.Distribution
	found := false
	for j := range rows {
		if r := &rows[j]; i.has(r) && r.stats.N > 0 {
			sum += r.stats.Last
			spread = joined(spread, r.stats.Spread)
			found = true
		}
	}
	if !found {
		return none
	}
	s := single(sum)
	s.Spread = spread
	return s
}

// ofMeter adds up what a meter has counted. There is no value if the processor had no counter for
// one of the threads.
func ofMeter(rows []row, i *Instance) Stats {
	for j := range rows {
		if r := &rows[j]; i.has(r) && r.stats.N == 0 {
			return Stats{}
		}
	}
	return total(rows, i, single(0))
}

// merged merges the statistics of rows. Last is the last value of the thread that entered the
// region last: the monitor does not record which thread left it last.
func merged(rows []row, i *Instance) (s Stats) {
	for j := range rows {
		if r := &rows[j]; i.has(r) {
			s.Merge(r.stats)
		}
	}
	return s
}

// threadCount counts live threads. A process without threads has ended and has no value.
func (rd *reading) threadCount(i *Instance) Stats {
	n := 0
	for j := range rd.threads {
		if i.has(&rd.threads[j]) {
			n++
		}
	}
	if n == 0 {
		return Stats{}
	}
	return single(uint64(n))
}
