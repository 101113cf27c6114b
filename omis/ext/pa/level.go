package pa

import (
	"mirador/omis"
	"mirador/omis/service"
)

// Levels on which rows can be read.
const (
	byThreads = iota
	byProcesses
	inTotal
)

// levelOf returns the level that a parameter selects.
func levelOf(v omis.Value) (int64, error) {
	level, ok := v.Int64()
	if !ok || level < byThreads || level > inTotal {
		return 0, omis.Errorf(omis.ParameterError, "the level is 0 (threads), 1 (processes) or 2 (in total)")
	}
	return level, nil
}

// at returns the owner, on a level, of the sum to which o's row belongs.
func (o owner) at(level int64) owner {
	switch level {
	case byProcesses:
		return owner{o.proc, omis.Undefined}
	case inTotal:
		return owner{omis.Undefined, omis.Undefined}
	}
	return o
}

// gather sums rows up to a level, in the order of each sum's first row; begin returns an
// empty sum, and join adds a row to a sum.
func gather[R any](rows []R, level int64, of func(R) owner, begin func(owner) R, join func(sum, r R)) []R {
	var list []R
	sums := make(map[owner]R)
	for _, r := range rows {
		o := of(r).at(level)
		sum, known := sums[o]
		if !known {
			sum = begin(o)
			sums[o], list = sum, append(list, sum)
		}
		join(sum, r)
	}
	return list
}

// sumServices returns the table rows of the services that sum up the rows of counters and
// timers.
func sumServices() []service.Service {
	level := service.IntegerParam("level")
	return []service.Service{
		{
			Name: "pa_counter_sum", Action: sumCounter, Class: classCounter, Kind: service.Information, Object: classCounter,
			Params: []service.Param{counters(), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer value; }* rows; }",
			Doc:    "return the rows of counters by threads (level 0), by processes (1) or in total (2)",
		},
		{
			Name: "pa_timer_sum", Action: sumTimer, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers(), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; integer unfinished; }* rows; }",
			Doc:    "return the rows of timers by threads (level 0), by processes (1) or in total (2), in seconds",
		},
		{
			Name: "pa_timer_exact", Action: exactTimer, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers(), level}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; integer last; integer sum_high; integer sum_low; integer sumsq_high; integer sumsq_low; integer min; integer max; integer unfinished; }* rows; }",
			Doc:    "return the rows of timers as pa_timer_sum does, but in whole nanoseconds: a sum is sum_high·2^64 + sum_low, and sumsq likewise. A variance needs them if it is small compared to the durations, because the difference of rounded sums is lost in their errors",
		},
	}
}

func sumCounter(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*counter).values(level)
}

func sumTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).values(level)
}

func exactTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).rowValues(level, (*row).exact)
}
