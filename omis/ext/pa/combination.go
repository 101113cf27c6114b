package pa

import (
	"sync"

	"mirador/omis"
	"mirador/omis/service"
)

// maxInputs is the largest number of signals for which a combination can wait.
const maxInputs = 1 << 16

// combination waits for signals and raises a user event when its rule is fulfilled; then
// it starts again. Its methods may be called from any goroutine.
type combination struct {
	event omis.Token
	size  int64
	rule  rule

	mu   sync.Mutex
	have int64
	seen map[int64]bool // used by the rule every
}

// rule records a signal and reports whether it counts. The caller holds mu.
type rule func(c *combination, input int64) bool

// every requires each of the inputs 1 to size, in any order.
func every(c *combination, input int64) bool {
	if c.seen[input] {
		return false
	}
	c.seen[input] = true
	return true
}

// inOrder requires the inputs 1 to size in this order. A signal that comes too early does
// not count, as in "happened after" of OMIS 5.6.
func inOrder(c *combination, input int64) bool { return input == c.have+1 }

// anyInput requires size signals of any input.
func anyInput(*combination, int64) bool { return true }

// signal records a signal and reports whether the combination is complete.
func (c *combination) signal(input int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rule(c, input) {
		c.have++
	}
	if c.have < c.size {
		return false
	}
	c.begin()
	return true
}

// begin discards the signals so far. The caller holds mu.
func (c *combination) begin() {
	c.have = 0
	c.seen = make(map[int64]bool)
}

func (c *combination) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin()
}

// combinationServices returns the table rows of pa_filter and of combinations.
func combinationServices() []service.Service {
	list := service.TokensParam("combination_list", classCombination)
	event := service.TokenParam("user_event", omis.ClassUserEvent)
	return []service.Service{
		{
			Name: "pa_filter", Action: filter,
			Params: []service.Param{{Name: "var", Type: service.Any}, {Name: "val", Type: service.Any}, event},
			Doc:    "raise a user event if var equals val, for the same object and with the same par1, par2 …",
		},
		{
			Name: "pa_and_create", Action: createAnd, Class: classCombination, Result: "token",
			Params: []service.Param{service.IntegerParam("inputs"), event},
			Doc:    "make a combination that raises a user event when each of the inputs 1, 2 … has been signalled",
		},
		{
			Name: "pa_sequence_create", Action: createSequence, Class: classCombination, Result: "token",
			Params: []service.Param{service.IntegerParam("inputs"), event},
			Doc:    "make a combination that raises a user event when the inputs 1, 2 … have been signalled in this order; an input that is signalled too early does not count",
		},
		{
			Name: "pa_count_create", Action: createCount, Class: classCombination, Result: "token",
			Params: []service.Param{service.IntegerParam("n"), event},
			Doc:    "make a combination that raises a user event at every n-th signal",
		},
		{
			Name: "pa_combination_signal", Action: signal, Class: classCombination, Object: classCombination,
			Params: []service.Param{list, service.IntegerParam("input")},
			Doc:    "signal an input of combinations; a combination that is complete raises its event for the current object and starts again",
		},
		{
			Name: "pa_combination_reset", Action: resetCombination, Class: classCombination, Object: classCombination, Params: []service.Param{list},
			Doc: "make combinations start again",
		},
		{
			Name: "pa_combination_delete", Action: remove, Class: classCombination, Object: classCombination, Params: []service.Param{list},
			Doc: "delete combinations",
		},
	}
}

func createAnd(c *service.Call) ([]omis.Value, error)      { return combine(c, every) }
func createSequence(c *service.Call) ([]omis.Value, error) { return combine(c, inOrder) }
func createCount(c *service.Call) ([]omis.Value, error)    { return combine(c, anyInput) }

func combine(c *service.Call, r rule) ([]omis.Value, error) {
	size, ok := c.Args[0].Int64()
	if !ok || size < 1 || size > maxInputs {
		return nil, omis.Errorf(omis.ParameterError, "a combination waits for 1 to %d signals", maxInputs)
	}
	k := &combination{event: event(c.Args[1]), size: size, rule: r}
	k.begin()
	return []omis.Value{omis.TokenValue(c.Scope.Add(classCombination, k))}, nil
}

func signal(c *service.Call) ([]omis.Value, error) {
	k := c.Object.(*combination)
	input, ok := c.Args[1].Int64()
	if !ok || input < 1 || input > k.size {
		return nil, omis.Errorf(omis.ParameterError, "%s has the inputs 1 to %d", c.Token, k.size)
	}
	if k.signal(input) {
		return nil, raise(c, k.event)
	}
	return nil, nil
}

func resetCombination(c *service.Call) ([]omis.Value, error) {
	c.Object.(*combination).reset()
	return nil, nil
}
