package main

import "fmt"

//go:noinline
func step(k int) int { return k & 3 }

type shape interface{ area() int }
type sq int

func (s sq) area() int { return int(s) * int(s) }

//go:noinline
func work(n, m int) (found int) { // runs 5
	for i := 0; i < n; i++ { // runs 15
		if i%3 == 2 { // runs 10
			continue
		}
		for k := range m { // runs 41
			found += step(k + i) // runs 33
		}
	}
	return found // runs 5
}

//go:noinline
func sum(list []int, by map[string]int) (s int) { // runs 2
	for _, v := range list {
		s += v // runs 3
	}
	for k, v := range by {
		s += len(k) + v // runs 2
	}
	return s
}

//go:noinline
func kinds(code string) (n int) {
	for _, c := range code { // runs 16
		switch c { // runs 15
		case 'a':
			n += 3
		case 'b':
			n *= 2
		case 'c':
			n -= 1
		case 'd':
			n ^= 7 // runs 2
		case 'e':
			n += step(n) // runs 2
		case 'f':
			n++
		case 'g':
			n += 9 // runs 2
		case 'h':
			return n // runs 1
		}
	}
	return n // runs 1
}

func main() {
	t := 0
	for i := range 5 {
		t += work(i, 7-i) // runs 5
	}
	t += sum([]int{1, 2, 3}, map[string]int{"x": 1, "yy": 2}) + sum(nil, nil) + kinds("abcdefghzz") + kinds("gfedcba")
	var s shape = sq(t)
	fmt.Println(t, s.area())
}
