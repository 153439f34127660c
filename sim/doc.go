// Package sim is a shoe and a dealer that do not exist: rounds of Punto Banco
// dealt by the rules from a seed, written as the telegrams that a real Angel Eye
// shoe sends, at its pace or at once, into anything that takes bytes. OpenPair
// makes a line for them that looks like a serial port.
//
// A simulated table stands beside it: the rounds as the inputs that a reader,
// sensors and a dealer's signals give, and the mistakes of game.md section 5 put
// into them. In tests all of them are made in every setting; testdata/matrix.md says
// what is detected of these, and where. A Drill shows one of each kind (Faults) on
// equipment that can fail: a Plug is a serial line that is pulled out, a Chip has
// the wires of boxes and panel.
//
// A Player is a line that gives what a capture has.
//
// The same Options deal the same cards and send the same bytes, whatever the pace.
package sim
