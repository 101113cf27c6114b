package binary

import (
	"context"
	"sync/atomic"
)

// once computes a value at its first use. A caller whose context ends leaves the computation
// to the next caller; an error is not kept.
type once[T any] struct {
	compute func(context.Context) (T, error)
	value   atomic.Pointer[T]
	turn    chan struct{} // full while a caller computes
}

func newOnce[T any](compute func(context.Context) (T, error)) *once[T] {
	return &once[T]{compute: compute, turn: make(chan struct{}, 1)}
}

func (o *once[T]) get(ctx context.Context) (value T, err error) {
	if known := o.value.Load(); known != nil {
		return *known, nil
	}
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	defer func() { <-o.turn }()
	if known := o.value.Load(); known != nil {
		return *known, nil
	}
	if value, err = o.compute(ctx); err == nil {
		o.value.Store(&value)
	}
	return value, err
}
