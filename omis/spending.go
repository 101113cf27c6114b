package omis

// Spending is the cost of observing some processes so far. The difference of two
// Spendings is the cost between them.
type Spending struct {
	Hits uint64 // occurrences
	Lost uint64 // occurrences that were not recorded for lack of memory
	// Inside is the CPU time that the occurrences took from the processes, Outside the
	// time for which they made threads wait; in nanoseconds, calculated from the cost of
	// one occurrence.
	Inside, Outside float64
	// CPU is the CPU time of the processes including Inside, in nanoseconds.
	CPU float64
	// Rough reports that some of the costs were not measured on this machine.
	Rough bool
	// Uncounted reports that the occurrences of some action lists are not counted.
	Uncounted bool
}

// Plus returns the sum of two Spendings.
func (s Spending) Plus(o Spending) Spending {
	return Spending{
		Hits: s.Hits + o.Hits, Lost: s.Lost + o.Lost, Inside: s.Inside + o.Inside, Outside: s.Outside + o.Outside,
		CPU: s.CPU + o.CPU, Rough: s.Rough || o.Rough, Uncounted: s.Uncounted || o.Uncounted,
	}
}

// Since returns the difference from an earlier Spending. It is zero if the counts went
// back because processes were forgotten in between.
func (s Spending) Since(before Spending) Spending {
	if before.Hits > s.Hits || before.CPU > s.CPU {
		return Spending{Rough: s.Rough, Uncounted: s.Uncounted}
	}
	return Spending{
		Hits: s.Hits - before.Hits, Lost: s.Lost - min(before.Lost, s.Lost),
		Inside: max(s.Inside-before.Inside, 0), Outside: max(s.Outside-before.Outside, 0),
		CPU: s.CPU - before.CPU, Rough: s.Rough, Uncounted: s.Uncounted,
	}
}

// PerHit returns the average time that an occurrence takes from its thread, in
// nanoseconds.
func (s Spending) PerHit() float64 {
	if s.Hits == 0 {
		return 0
	}
	return (s.Inside + s.Outside) / float64(s.Hits)
}

// Share returns the share of the processes' time that observing takes. That time is the
// CPU time of their threads plus the time for which these were held.
func (s Spending) Share() float64 {
	if s.Inside+s.Outside == 0 {
		return 0
	}
	return min((s.Inside+s.Outside)/max(s.CPU+s.Outside, 1), 1)
}

// Dilation returns the time dilation of the event-action model (section 3): the time that
// something takes with monitoring, divided by the time without.
func (s Spending) Dilation() float64 {
	if share := s.Share(); share < mostShare {
		return 1 / (1 - share)
	}
	return 1 / (1 - mostShare)
}

// PreciseShare is the greatest share whose dilation is known as precisely as the cost of an
// occurrence, which is known within a factor of 1.5: if the true cost is 1.5 times as great,
// the dilation 1/(1−share) of a greater share is wrong by more than that factor.
const PreciseShare = 0.4

// mostShare is the greatest share distinguished from 1, because costs are known to about
// a percent.
const mostShare = 0.999
