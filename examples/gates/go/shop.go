// Package shop is an example of a package whose benchmarks have limits. Only its own test imports it.
package shop

import "strconv"

// Price returns the price of an item.
func Price(item int) (price int) {
	for _, c := range []byte("item-" + strconv.Itoa(item)) {
		price = (price*31 + int(c)) % 1000
	}
	return price
}
