package pa

import (
	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// histogram is the distribution of a thread's intervals, if its timer keeps histograms.
type histogram struct {
	counts []uint64             // intervals measured by the monitor, by bucket; nil if the timer keeps no histograms
	fed    program.Distribution // intervals measured by programs
}

func (h *histogram) measured(ns uint64) {
	if h.counts != nil {
		h.counts[program.BucketOf(ns)]++
	}
}

// join adds another histogram to h, which must not measure intervals itself any more.
func (h *histogram) join(other *histogram) {
	if d := other.all(); len(d) > 0 {
		h.fed = h.fed.Join(d)
	}
}

func (h *histogram) all() program.Distribution {
	if d := program.DistributionOf(h.counts); len(d) > 0 {
		return d.Join(h.fed)
	}
	return h.fed
}

// distribution returns the distribution of a row, within the limits of its shortest and
// longest interval. These can be missing if the thread was interrupted at the end of its
// first interval.
func (r *row) distribution() program.Distribution {
	if r.count == 0 {
		return r.all()
	}
	return r.all().Within(r.min, r.max)
}

// histogramRows returns the rows of stores with their distributions.
func histogramRows(stores []service.Store) (all []row, err error) {
	for _, s := range stores {
		fed, err := s.(service.HistogramStore).Histograms()
		if err != nil {
			return nil, err
		}
		for i := range fed {
			r := measured(&fed[i].Row)
			r.fed = fed[i].Buckets
			all = append(all, r)
		}
	}
	return all, nil
}

// histogramValues returns the rows of a timer that keeps histograms; add appends the values of
// a row.
func (t *timer) histogramValues(level int64, add func(*row, []omis.Value) []omis.Value) ([]omis.Value, error) {
	if !t.spread {
		return nil, omis.Errorf(omis.ParameterError, `the timer keeps no histogram; create it by pa_timer_create4("ordered",1,"histogram")`)
	}
	t.feeds.Lock()
	defer t.feeds.Unlock()
	fed, err := histogramRows(t.feeds.stores)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return asValues(t.with(fed), level, add), nil
}

// appendHistogram appends the row's process and thread, and its buckets in seconds.
func (r *row) appendHistogram(list []omis.Value) []omis.Value {
	d := r.distribution()
	buckets := make([]omis.Value, 0, 3*len(d))
	for _, b := range d {
		buckets = append(buckets, omis.Seconds(b.Least), omis.Seconds(b.Most), omis.Int(int64(b.Count)))
	}
	return append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(int64(d.Count())), omis.List(buckets...))
}

// appendPercentiles appends the row's process and thread, and its percentiles unless it
// has no intervals.
func (r *row) appendPercentiles(list []omis.Value, percent []float64) []omis.Value {
	d := r.distribution()
	n := d.Count()
	var values []omis.Value
	if n > 0 {
		for _, p := range percent {
			least, most := d.Percentile(p)
			half := float64(most-least) / 2e9
			values = append(values, omis.Float(float64(least)/1e9+half), omis.Float(half))
		}
	}
	return append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(int64(n)), omis.List(values...))
}

// histogramServices returns the table rows of the services that read distributions.
func histogramServices() []service.Service {
	level := service.IntegerParam("level")
	return []service.Service{
		{
			Name: "pa_timer_histogram", Action: histogramOfTimer, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers(), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; struct { floating least; floating most; integer count; }* buckets; }* rows; }",
			Doc:    "return the histograms of timers: each bucket counts the intervals that took from least to most seconds; by threads (level 0), by processes (1) or in total (2). Empty buckets are omitted; buckets of several placements may overlap",
		},
		{
			Name: "pa_timer_percentiles", Action: percentilesOfTimer, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers(), service.FloatsParam("percent"), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; struct { floating duration; floating error; }* percentiles; }* rows; }",
			Doc:    "return for each percentage the duration that this part of the intervals of timers did not exceed, with its error, or nothing if there are no intervals; by threads (level 0), by processes (1) or in total (2), in seconds",
		},
	}
}

func createTimer4(c *service.Call) ([]omis.Value, error) {
	clock, err := clockOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	t := newTimer()
	t.setClock(clock, c.Args[0].Str)
	if err := t.configure(c.Args[1], c.Args[2]); err != nil {
		return nil, err
	}
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}

func histogramOfTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).histogramValues(level, (*row).appendHistogram)
}

func percentilesOfTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[2])
	if err != nil {
		return nil, err
	}
	percent, err := percentages(c.Args[1].List)
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).histogramValues(level, func(r *row, list []omis.Value) []omis.Value { return r.appendPercentiles(list, percent) })
}

// mostPercentages is the largest number of percentages in one request.
const mostPercentages = 100

func percentages(list []omis.Value) ([]float64, error) {
	percent := make([]float64, len(list))
	for i := range list {
		p, ok := list[i].Number()
		if !ok || !(p >= 0 && p <= 100) {
			return nil, omis.Errorf(omis.ParameterError, "a percentage must be between 0 and 100")
		}
		percent[i] = p
	}
	if len(list) == 0 || len(list) > mostPercentages {
		return nil, omis.Errorf(omis.ParameterError, "a request may contain 1 to %d percentages", mostPercentages)
	}
	return percent, nil
}
