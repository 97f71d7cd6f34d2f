//! Questions to the operator: what is asked, how it is drawn, and how it is answered.
