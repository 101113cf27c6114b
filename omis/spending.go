package omis

// Spending is what observing has cost some processes since it began. Of two of them
// the difference tells what it cost in between.
type Spending struct {
	Hits uint64 // occurrences
	Lost uint64 // of them, left no trace for want of memory
	// Inside is what the occurrences took of the CPU time of the processes, Outside
	// how long they made threads wait; in nanoseconds, by the cost of one.
	Inside, Outside float64
	// CPU is the time that the processes used in all, Inside included; in nanoseconds.
	CPU float64
	// Rough tells that some of the costs were not measured on this machine.
	Rough bool
	// Uncounted tells that there are lists whose occurrences nobody counts.
	Uncounted bool
}

// Plus adds what was spent elsewhere.
func (s Spending) Plus(o Spending) Spending {
	return Spending{
		Hits: s.Hits + o.Hits, Lost: s.Lost + o.Lost, Inside: s.Inside + o.Inside, Outside: s.Outside + o.Outside,
		CPU: s.CPU + o.CPU, Rough: s.Rough || o.Rough, Uncounted: s.Uncounted || o.Uncounted,
	}
}

// Since is what was spent after an earlier time. What has been forgotten in between
// was not spent.
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

// PerHit is what an occurrence takes of its thread, in nanoseconds.
func (s Spending) PerHit() float64 {
	if s.Hits == 0 {
		return 0
	}
	return (s.Inside + s.Outside) / float64(s.Hits)
}

// Share is the part of the processes' time that observing takes: of the time in which
// their threads run, or would run if they were not held.
func (s Spending) Share() float64 {
	if s.Inside+s.Outside == 0 {
		return 0
	}
	return min((s.Inside+s.Outside)/max(s.CPU+s.Outside, 1), 1)
}

// Dilation is the time dilation of the event-action model (section 3): the time that
// something takes with monitoring, over the time that it takes without.
func (s Spending) Dilation() float64 {
	if share := s.Share(); share < mostShare {
		return 1 / (1 - share)
	}
	return 1 / (1 - mostShare)
}

// mostShare is the greatest share that is told from all: costs are known to a percent.
const mostShare = 0.999
