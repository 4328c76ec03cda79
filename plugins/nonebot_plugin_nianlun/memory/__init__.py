"""What a memory is and how it is counted, checked, dated and shown: pure logic, no I/O."""
