// Package verdict is the statistics of performance gates: exact intervals of medians, planned
// looks at a growing sample, and verdicts by equivalence. It is pure: numbers in, verdicts out,
// no goroutines. Only the packages of the gate and the command line import it.
package verdict

import "math"

// Outcome is the result of an assertion.
type Outcome string

const (
	Passed       Outcome = "passed"
	Failed       Outcome = "failed"
	Inconclusive Outcome = "inconclusive"
)

// Error is the probability of a wrong verdict at each side of an interval: that a program is
// reported as over its limit although it is not, or as below although it is not.
const Error = 0.01

// Interval is an estimate with the interval that contains the true value.
type Interval struct {
	Estimate  float64 `json:"estimate"`
	Low, High float64
}

// Half returns half of the interval's width.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Below judges by equivalence whether the value is below a limit: it passes if the whole
// interval lies below, and fails if the whole interval lies above. Otherwise the sample is too
// small or too noisy to tell.
func (i Interval) Below(limit float64) Outcome {
	switch {
	case i.Low > limit:
		return Failed
	case i.High < limit || i.High == limit && i.Low == i.High:
		return Passed
	}
	return Inconclusive
}

// Above judges whether the value is above a limit.
func (i Interval) Above(limit float64) Outcome {
	return Interval{Low: -i.High, High: -i.Low}.Below(-limit)
}

// Worst returns the outcome of several assertions together: a failure, else an inconclusive
// one.
func Worst(all ...Outcome) Outcome {
	worst := Passed
	for _, o := range all {
		if o == Failed {
			return Failed
		}
		if o != Passed {
			worst = o
		}
	}
	return worst
}

// normal returns the distribution function of the standard normal distribution, quantile its
// inverse.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// spent returns the error that may be spent when a share of the planned sample is there, by
// the spending function that resembles the boundaries of O'Brien and Fleming: little
// in the beginning, all in the end.
func spent(alpha, share float64) float64 {
	if share <= 0 {
		return 0
	}
	return 2 - 2*normal(quantile(1-alpha/2)/math.Sqrt(min(share, 1)))
}
