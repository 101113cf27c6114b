//go:build linux && amd64

package kernel

import "errors"

// Sweep takes rows of ended threads out, as is done from time to time.
func (p *Placer) Sweep() error {
	var errs []error
	for _, q := range p.openPools() {
		errs = append(errs, q.sweep())
	}
	return errors.Join(errs...)
}
