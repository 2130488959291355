"""What goes over the wire: messages, rounds, links, signatures."""
