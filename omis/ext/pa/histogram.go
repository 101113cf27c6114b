package pa

import (
	"mirador/omis"
	"mirador/omis/service"
)

// histogram is how many intervals of a thread took how long, where its timer keeps that.
type histogram struct {
	counts []uint64          // of those that the monitor measured, by buckets; nil: none are kept
	fed    omis.Distribution // of those that programs did
}

func (h *histogram) measured(ns uint64) {
	if h.counts != nil {
		h.counts[omis.BucketOf(ns)]++
	}
}

// join adds another one; what is the sum of several counts nothing itself any more.
func (h *histogram) join(other *histogram) {
	if d := other.all(); len(d) > 0 {
		h.fed = h.fed.Join(d)
	}
}

func (h *histogram) all() omis.Distribution {
	if d := omis.DistributionOf(h.counts); len(d) > 0 {
		return d.Join(h.fed)
	}
	return h.fed
}

// distribution is that of a row, which knows the least and the greatest of all, but for one
// whose thread was stopped in the middle of its first interval's end.
func (r *row) distribution() omis.Distribution {
	if r.count == 0 {
		return r.all()
	}
	return r.all().Within(r.min, r.max)
}

// spreadOf are the rows of stores with their distributions.
func spreadOf(stores []service.Store) (all []row, err error) {
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

// spreadOut is told with the distributions of rows.
func (t *timer) spreadOut(level int64, add func(*row, []omis.Value) []omis.Value) ([]omis.Value, error) {
	if !t.spread {
		return nil, omis.Errorf(omis.ParameterError, `the timer keeps no histogram: one made by pa_timer_create4("ordered",1,"histogram") does`)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fed, err := spreadOf(t.feeds.stores)
	if err != nil {
		return nil, err
	}
	return inWords(t.with(fed), level, add), nil
}

// appendHistogram adds whose the row is and its buckets, in seconds.
func (r *row) appendHistogram(list []omis.Value) []omis.Value {
	d := r.distribution()
	buckets := make([]omis.Value, 0, 3*len(d))
	for _, b := range d {
		buckets = append(buckets, omis.Float(seconds(b.Least)), omis.Float(seconds(b.Most)), omis.Int(int64(b.Count)))
	}
	return append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(int64(d.Count())), omis.List(buckets...))
}

// appendPercentiles adds whose the row is and its percentiles; there are none of nothing.
func (r *row) appendPercentiles(list []omis.Value, percent []float64) []omis.Value {
	d := r.distribution()
	n := d.Count()
	var values []omis.Value
	if n > 0 {
		for _, p := range percent {
			least, most := d.Percentile(p)
			half := seconds(most-least) / 2
			values = append(values, omis.Float(seconds(least)+half), omis.Float(half))
		}
	}
	return append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(int64(n)), omis.List(values...))
}

// histogramServices are the rows of the table that read distributions.
func histogramServices(timers service.Param) []service.Service {
	level := service.IntegerParam("level")
	return []service.Service{
		{
			Name: "pa_timer_histogram", Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers, level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; struct { floating least; floating most; integer count; }* buckets; }* rows; }",
			Doc:    "return how many intervals of timers took how long: neither less than least nor more than most; by threads (level 0), by processes (1) or in total (2), in seconds. Empty buckets are left out; those of several placements may overlap",
		},
		{
			Name: "pa_timer_percentiles", Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers, service.FloatsParam("percent"), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; struct { floating duration; floating error; }* percentiles; }* rows; }",
			Doc:    "return for each of some percentages what so many percent of all intervals of timers did not take longer than, which is true but for the error; nothing where there is no interval; by threads (level 0), by processes (1) or in total (2), in seconds",
		},
	}
}

func createTimer4(c *service.Call) ([]omis.Value, error) {
	t, err := sampledTimer(c)
	if err != nil {
		return nil, err
	}
	switch keep := c.Args[2].Str; keep {
	case "sums":
	case "histogram":
		t.spread = true
	default:
		return nil, omis.Errorf(omis.ParameterError, "%q is nothing that a timer keeps: there are sums and histogram", keep)
	}
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}

func histogramOfTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).spreadOut(level, (*row).appendHistogram)
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
	return c.Object.(*timer).spreadOut(level, func(r *row, list []omis.Value) []omis.Value { return r.appendPercentiles(list, percent) })
}

// mostPercentages bounds how many are asked for at once.
const mostPercentages = 100

func percentages(list []omis.Value) ([]float64, error) {
	percent := make([]float64, len(list))
	for i := range list {
		p, ok := list[i].Number()
		if !ok || !(p >= 0 && p <= 100) {
			return nil, omis.Errorf(omis.ParameterError, "a percentage is 0 to 100")
		}
		percent[i] = p
	}
	if len(list) == 0 || len(list) > mostPercentages {
		return nil, omis.Errorf(omis.ParameterError, "1 to %d percentages may be asked for at once", mostPercentages)
	}
	return percent, nil
}
